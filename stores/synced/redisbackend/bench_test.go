package redisbackend_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/stores/synced"
	"github.com/floodgate-go/floodgate/stores/synced/backendtest"
	"github.com/floodgate-go/floodgate/stores/synced/redisbackend"
)

func BenchmarkCloseAndStart(b *testing.B) {
	backendtest.Benchmark(b, func(t testing.TB) synced.Backend {
		return redisbackend.New(newClient(t, redistest.Start(t).Addr))
	})
}
