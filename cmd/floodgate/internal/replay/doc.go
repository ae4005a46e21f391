// Package replay runs policy files over access logs in the logs' own time, and
// reports which requests would have been denied. Its memory is bounded, however
// long the logs are.
package replay
