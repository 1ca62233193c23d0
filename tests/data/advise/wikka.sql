-- Tables in the form of WikkaWiki's, as figure 2 of the thesis has them; the statements are our own.
CREATE TABLE wikka_pages (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  tag VARCHAR(75) NOT NULL,
  time DATETIME NOT NULL,
  body MEDIUMTEXT NOT NULL,
  owner VARCHAR(75) NOT NULL,
  user VARCHAR(75) NOT NULL,
  latest ENUM('N', 'Y') NOT NULL,
  note VARCHAR(100) NOT NULL,
  handler VARCHAR(30) NOT NULL,
  PRIMARY KEY (id),
  KEY by_tag (tag),
  KEY by_time (time),
  KEY by_latest (latest),
  FULLTEXT KEY by_body (body)
);
CREATE TABLE wikka_acls (
  page_tag VARCHAR(75) NOT NULL,
  read_acl TEXT NOT NULL,
  write_acl TEXT NOT NULL,
  comment_acl TEXT NOT NULL,
  PRIMARY KEY (page_tag)
);
CREATE TABLE wikka_links (
  from_tag VARCHAR(75) NOT NULL,
  to_tag VARCHAR(75) NOT NULL,
  UNIQUE KEY both_tags (from_tag, to_tag),
  KEY by_from (from_tag),
  KEY by_to (to_tag)
);
CREATE TABLE wikka_comments (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  page_tag VARCHAR(75) NOT NULL,
  time DATETIME NOT NULL,
  comment TEXT NOT NULL,
  user VARCHAR(75) NOT NULL,
  PRIMARY KEY (id),
  KEY by_page (page_tag),
  KEY by_time (time)
);
CREATE TABLE wikka_users (
  name VARCHAR(75) NOT NULL,
  password VARCHAR(32) NOT NULL,
  email VARCHAR(50) NOT NULL,
  revisioncount INT UNSIGNED NOT NULL,
  changescount INT UNSIGNED NOT NULL,
  doubleclickedit ENUM('Y', 'N') NOT NULL,
  signuptime DATETIME NOT NULL,
  show_comments ENUM('Y', 'N') NOT NULL,
  status VARCHAR(20) NOT NULL,
  theme VARCHAR(50) NOT NULL,
  PRIMARY KEY (name),
  KEY by_signup (signuptime)
);
CREATE TABLE wikka_sessions (
  sessionid CHAR(32) NOT NULL,
  userid VARCHAR(75) NOT NULL,
  session_start DATETIME NOT NULL,
  PRIMARY KEY (sessionid, userid)
);
CREATE TABLE wikka_referrers (
  page_tag VARCHAR(75) NOT NULL,
  referrer VARCHAR(300) NOT NULL,
  time DATETIME NOT NULL,
  KEY by_page (page_tag),
  KEY by_time (time)
);
CREATE TABLE wikka_referrer_blacklist (
  spammer VARCHAR(300) NOT NULL,
  KEY by_spammer (spammer)
);
