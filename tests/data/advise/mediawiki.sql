-- Tables in the form of MediaWiki's, fewer of them and with fewer columns; the statements are our own.
CREATE TABLE page (
  page_id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  page_namespace INT NOT NULL,
  page_title VARBINARY(255) NOT NULL,
  page_is_redirect TINYINT(1) NOT NULL,
  page_touched BINARY(14) NOT NULL,
  page_latest INT UNSIGNED NOT NULL,
  page_len INT UNSIGNED NOT NULL,
  PRIMARY KEY (page_id),
  UNIQUE KEY page_name (page_namespace, page_title)
);
CREATE TABLE revision (
  rev_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  rev_page INT UNSIGNED NOT NULL,
  rev_actor BIGINT UNSIGNED NOT NULL,
  rev_timestamp BINARY(14) NOT NULL,
  rev_comment VARBINARY(767) NOT NULL,
  rev_parent_id BIGINT UNSIGNED,
  rev_len INT UNSIGNED,
  PRIMARY KEY (rev_id),
  KEY page_time (rev_page, rev_timestamp),
  KEY actor_time (rev_actor, rev_timestamp)
);
CREATE TABLE slot (
  slot_revision_id BIGINT UNSIGNED NOT NULL,
  slot_content MEDIUMBLOB NOT NULL,
  slot_model VARBINARY(64) NOT NULL,
  PRIMARY KEY (slot_revision_id)
);
CREATE TABLE actor (
  actor_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  actor_name VARBINARY(255) NOT NULL,
  actor_user INT UNSIGNED,
  PRIMARY KEY (actor_id),
  UNIQUE KEY actor_name (actor_name)
);
CREATE TABLE user (
  user_id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  user_name VARBINARY(255) NOT NULL,
  user_password TINYBLOB NOT NULL,
  user_email TINYBLOB NOT NULL,
  user_touched BINARY(14) NOT NULL,
  user_editcount INT,
  PRIMARY KEY (user_id),
  UNIQUE KEY user_name (user_name)
);
CREATE TABLE user_properties (
  up_user INT UNSIGNED NOT NULL,
  up_property VARBINARY(255) NOT NULL,
  up_value BLOB,
  PRIMARY KEY (up_user, up_property)
);
CREATE TABLE user_groups (
  ug_user INT UNSIGNED NOT NULL,
  ug_group VARBINARY(255) NOT NULL,
  ug_expiry VARBINARY(14),
  PRIMARY KEY (ug_user, ug_group),
  KEY ug_group (ug_group)
);
CREATE TABLE pagelinks (
  pl_from INT UNSIGNED NOT NULL,
  pl_namespace INT NOT NULL,
  pl_title VARBINARY(255) NOT NULL,
  PRIMARY KEY (pl_from, pl_namespace, pl_title),
  KEY pl_target (pl_namespace, pl_title, pl_from)
);
CREATE TABLE categorylinks (
  cl_from INT UNSIGNED NOT NULL,
  cl_to VARBINARY(255) NOT NULL,
  cl_sortkey VARBINARY(230) NOT NULL,
  PRIMARY KEY (cl_from, cl_to),
  KEY cl_sortkey (cl_to, cl_sortkey, cl_from)
);
CREATE TABLE recentchanges (
  rc_id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  rc_timestamp BINARY(14) NOT NULL,
  rc_actor BIGINT UNSIGNED NOT NULL,
  rc_namespace INT NOT NULL,
  rc_title VARBINARY(255) NOT NULL,
  rc_bot TINYINT(1) NOT NULL,
  PRIMARY KEY (rc_id),
  KEY rc_timestamp (rc_timestamp)
);
CREATE TABLE watchlist (
  wl_id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  wl_user INT UNSIGNED NOT NULL,
  wl_namespace INT NOT NULL,
  wl_title VARBINARY(255) NOT NULL,
  PRIMARY KEY (wl_id),
  UNIQUE KEY wl_user (wl_user, wl_namespace, wl_title)
);
CREATE TABLE site_stats (
  ss_row_id INT UNSIGNED NOT NULL,
  ss_total_edits BIGINT UNSIGNED,
  ss_good_articles BIGINT UNSIGNED,
  PRIMARY KEY (ss_row_id)
);
CREATE TABLE searchindex (
  si_page INT UNSIGNED NOT NULL,
  si_title VARCHAR(255) NOT NULL,
  si_text MEDIUMTEXT NOT NULL,
  PRIMARY KEY (si_page),
  FULLTEXT KEY si_text (si_text)
);
