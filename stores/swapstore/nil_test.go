package swapstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

type swapperMap map[string][]byte

func (swapperMap) Load(context.Context, []string) ([]swapstore.Value, error) { return nil, nil }
func (swapperMap) Swap(context.Context, string, swapstore.Value, []byte, time.Duration) (bool, error) {
	return true, nil
}
func (swapperMap) Delete(context.Context, []string) error { return nil }

// A Swapper that is nil inside its interface is an error, too.
func TestANilSwapperIsAnError(t *testing.T) {
	var pointer *swapperMap
	for _, s := range []swapstore.Swapper{nil, swapperMap(nil), pointer} {
		if _, err := swapstore.New(s, swapstore.Config{}); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%T: error %v", s, err)
		}
	}
	if _, err := swapstore.New(swapperMap{}, swapstore.Config{}); err != nil {
		t.Error(err)
	}
}
