// Package replay runs policy files over access logs in the logs' own time, and
// says what would have been refused. Its memory is bounded, however long the
// logs are.
package replay
