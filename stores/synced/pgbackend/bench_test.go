package pgbackend_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/postgrestest"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/backendtest"
)

func BenchmarkCloseAndStart(b *testing.B) {
	backendtest.Benchmark(b, func(t testing.TB) synced.Backend {
		return newBackend(t, newPool(t, postgrestest.Start(t).URL))
	})
}
