CREATE TABLE IF NOT EXISTS floodgate_counters (
	namespace text   NOT NULL,
	key       text   NOT NULL,
	size      bigint NOT NULL, -- of the window, in microseconds
	start     bigint NOT NULL, -- of the window, in microseconds since the Unix epoch
	count     bigint NOT NULL,
	expires   bigint NOT NULL, -- in microseconds since the Unix epoch
	PRIMARY KEY (namespace, size, start, key)
);
CREATE INDEX IF NOT EXISTS floodgate_counters_expires ON floodgate_counters (expires);
CREATE TABLE IF NOT EXISTS floodgate_nodes (
	namespace text   NOT NULL,
	node      text   NOT NULL,
	sequence  bigint NOT NULL, -- of the last batch applied
	seen      bigint NOT NULL, -- in microseconds since the Unix epoch
	PRIMARY KEY (namespace, node)
);
