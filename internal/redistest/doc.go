// Package redistest starts real Redis servers for tests: one, a cluster of
// three, or a primary with a replica and a Sentinel. Each has a port of its own
// on the loopback interface, keeps nothing on disk, and ends with its test.
//
// FLOODGATE_REDIS in the environment names the redis-server to start, so that the
// tests can run with the oldest version that the store supports.
//
// If redis-server is not installed, the test is skipped; if the environment has
// FLOODGATE_REQUIRE_SERVERS=1, it fails.
package redistest
