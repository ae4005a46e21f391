// Package queriestest tests the dashboard and the alerts of observe/dashboards: every
// query runs in the Prometheus engine, over the metrics that the program
// examples/monitoring has told while it was healthy, attacked, and without its store.
// It is a module of its own, so that nobody else has Prometheus's engine in go.mod.
package queriestest
