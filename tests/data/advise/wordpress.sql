-- Tables in the form of WordPress's, with fewer columns; the statements are our own.
CREATE TABLE wp_posts (
  ID BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  post_author BIGINT UNSIGNED NOT NULL,
  post_date DATETIME NOT NULL,
  post_content LONGTEXT NOT NULL,
  post_title TEXT NOT NULL,
  post_excerpt TEXT NOT NULL,
  post_status VARCHAR(20) NOT NULL,
  post_name VARCHAR(200) NOT NULL,
  post_parent BIGINT UNSIGNED NOT NULL,
  post_type VARCHAR(20) NOT NULL,
  comment_count BIGINT NOT NULL,
  PRIMARY KEY (ID),
  KEY post_name (post_name(191)),
  KEY type_status_date (post_type, post_status, post_date, ID),
  KEY post_parent (post_parent),
  KEY post_author (post_author)
);
CREATE TABLE wp_postmeta (
  meta_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  post_id BIGINT UNSIGNED NOT NULL,
  meta_key VARCHAR(255),
  meta_value LONGTEXT,
  PRIMARY KEY (meta_id),
  KEY post_id (post_id),
  KEY meta_key (meta_key(191))
);
CREATE TABLE wp_comments (
  comment_ID BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  comment_post_ID BIGINT UNSIGNED NOT NULL,
  comment_author TINYTEXT NOT NULL,
  comment_date DATETIME NOT NULL,
  comment_content TEXT NOT NULL,
  comment_approved VARCHAR(20) NOT NULL,
  user_id BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (comment_ID),
  KEY comment_post_ID (comment_post_ID),
  KEY approved_date (comment_approved, comment_date)
);
CREATE TABLE wp_commentmeta (
  meta_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  comment_id BIGINT UNSIGNED NOT NULL,
  meta_key VARCHAR(255),
  meta_value LONGTEXT,
  PRIMARY KEY (meta_id),
  KEY comment_id (comment_id)
);
CREATE TABLE wp_users (
  ID BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  user_login VARCHAR(60) NOT NULL,
  user_pass VARCHAR(255) NOT NULL,
  user_email VARCHAR(100) NOT NULL,
  user_registered DATETIME NOT NULL,
  display_name VARCHAR(250) NOT NULL,
  PRIMARY KEY (ID),
  KEY user_login (user_login),
  KEY user_email (user_email)
);
CREATE TABLE wp_usermeta (
  umeta_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  user_id BIGINT UNSIGNED NOT NULL,
  meta_key VARCHAR(255),
  meta_value LONGTEXT,
  PRIMARY KEY (umeta_id),
  KEY user_id (user_id)
);
CREATE TABLE wp_terms (
  term_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  name VARCHAR(200) NOT NULL,
  slug VARCHAR(200) NOT NULL,
  PRIMARY KEY (term_id),
  KEY slug (slug(191))
);
CREATE TABLE wp_term_taxonomy (
  term_taxonomy_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  term_id BIGINT UNSIGNED NOT NULL,
  taxonomy VARCHAR(32) NOT NULL,
  description LONGTEXT NOT NULL,
  count BIGINT NOT NULL,
  PRIMARY KEY (term_taxonomy_id),
  UNIQUE KEY term_id_taxonomy (term_id, taxonomy)
);
CREATE TABLE wp_term_relationships (
  object_id BIGINT UNSIGNED NOT NULL,
  term_taxonomy_id BIGINT UNSIGNED NOT NULL,
  term_order INT NOT NULL,
  PRIMARY KEY (object_id, term_taxonomy_id),
  KEY term_taxonomy_id (term_taxonomy_id)
);
CREATE TABLE wp_options (
  option_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  option_name VARCHAR(191) NOT NULL,
  option_value LONGTEXT NOT NULL,
  autoload VARCHAR(20) NOT NULL,
  PRIMARY KEY (option_id),
  UNIQUE KEY option_name (option_name),
  KEY autoload (autoload)
);
CREATE TABLE wp_links (
  link_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  link_url VARCHAR(255) NOT NULL,
  link_name VARCHAR(255) NOT NULL,
  PRIMARY KEY (link_id)
);
