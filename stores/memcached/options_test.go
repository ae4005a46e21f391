package memcachedstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

func TestWrongOptionsAreNamed(t *testing.T) {
	_, err := memcachedstore.New(nil, memcachedstore.Timeout(0), memcachedstore.IdleConnections(0), memcachedstore.Clock(nil))
	if !errors.Is(err, core.ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{"servers: none", "Timeout: 0s", "IdleConnections: 0", "Clock: <nil>"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if _, err := memcachedstore.New([]string{"nonsense"}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "nonsense") {
		t.Error(err)
	}
	if err := newStore(t, []string{"127.0.0.1:1"}).Ping(t.Context()); err == nil {
		t.Error("Ping of nobody: no error")
	}
	if err := newStore(t, []string{memcachedtest.Start(t).Addr}).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
