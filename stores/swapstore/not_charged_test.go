package swapstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// ailing is a Swapper whose n-th operation fails, and all later ones if lasting.
type ailing struct {
	*mapSwapper
	n       int
	lasting bool
	err     error
}

func (s *ailing) fails() error {
	if s.n--; s.n == 0 || s.n < 0 && s.lasting {
		return s.err
	}
	return nil
}

func (s *ailing) Load(ctx context.Context, names []string) ([]swapstore.Value, error) {
	if err := s.fails(); err != nil {
		return nil, err
	}
	return s.mapSwapper.Load(ctx, names)
}

func (s *ailing) Swap(ctx context.Context, name string, old swapstore.Value, value []byte, ttl time.Duration) (bool, error) {
	if err := s.fails(); err != nil {
		return false, err
	}
	return s.mapSwapper.Swap(ctx, name, old, value, ttl)
}

// The error of a Take tells whether the Take is certain to have charged nothing.
func TestTheErrorTellsThatNothingWasCharged(t *testing.T) {
	refused := fmt.Errorf("refused: %w", core.ErrNotCharged)
	for _, row := range []struct {
		name    string
		keys    int
		n       int // which operation fails
		lasting bool
		err     error
		want    bool
	}{
		{"nothing can be loaded", 2, 1, true, errFault, true},
		{"a Swap fails", 1, 2, false, errFault, false},
		{"a Swap is refused", 1, 2, false, refused, true},
		{"a Swap is refused, and the first key's charge is taken back", 2, 3, false, refused, true},
		{"a Swap is refused, and the first key's charge cannot be taken back", 2, 3, true, refused, false},
		{"a Swap fails, and the first key's charge is taken back", 2, 3, false, errFault, false},
		{"a Swap fails, and the first key's charge cannot be taken back", 2, 3, true, errFault, false},
	} {
		s := &ailing{newMapSwapper(), row.n, row.lasting, row.err}
		b, err := core.Must(swapstore.New(s, swapstore.Config{})).Open("l", stepRules)
		if err != nil {
			t.Fatal(err)
		}
		costs := []int64{1, 1}[:row.keys]
		err = storetest.Do(t.Context(), b, core.OpTake, batchOf(costs...))
		if err == nil || errors.Is(err, core.ErrNotCharged) != row.want {
			t.Errorf("%s: the error %q says that nothing was charged: %v, want %v", row.name, err, errors.Is(err, core.ErrNotCharged), row.want)
		}
		if s.lasting = false; row.want {
			batch := batchOf(costs...)
			if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Items[0].Results[0].Remaining != 2 {
				t.Errorf("%s: %v; a take after it leaves %d of 3", row.name, err, batch.Items[0].Results[0].Remaining)
			}
		}
	}
}
