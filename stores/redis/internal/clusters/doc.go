// Package clusters has no code: its tests are those of package storetest, for stores/redis with
// Redis Cluster. They are apart from the tests of stores/redis so that go test runs both at the
// same time.
package clusters
