// Package dashboards tests the dashboard and the alerts of observe/dashboards: every
// query runs in the Prometheus engine, over the metrics that the program
// extra/examples/monitoring reported while it was healthy, attacked, and without its store.
package dashboards
