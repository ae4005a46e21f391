package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

func TestLimitsOfTheCalendarAreRefused(t *testing.T) {
	store := factory(newClient(t, "127.0.0.1:1"))(t, nil)
	_, err := store.Bind(bindName(t), []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerMonth(5)}}})
	if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `rule "r"`) || !strings.Contains(err.Error(), "Zone: UTC") {
		t.Error(err)
	}
	b, err := store.Bind(bindName(t), []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerDay(5)}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Rebind([]core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerMonth(5)}}}); !errors.Is(err, core.ErrConfig) {
		t.Error(err)
	}
}
