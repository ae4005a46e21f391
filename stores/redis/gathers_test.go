package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// gatherer is a client that writes the commands of several callers together, later:
// it keeps each until the test ends.
type gatherer struct {
	kept chan redis.Cmder
	end  chan struct{}
}

func (g gatherer) Process(_ context.Context, cmd redis.Cmder) error {
	g.kept <- cmd
	<-g.end
	return errRefused
}

// A command that a gathering client has been given may run, also if it has not been
// written yet. It stays one that can be written: if it failed then, the commands of
// other callers would fail with it.
func TestACommandOfAGatheringClientIsNotWithdrawn(t *testing.T) {
	client := gatherer{make(chan redis.Cmder, 1), make(chan struct{})}
	defer close(client.end)
	store := redisstore.New(client, redisstore.Timeout(20*time.Millisecond))
	l := core.Must(core.New(core.Config{Name: "gathered", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}}}))
	_, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
	var e *redisstore.Error
	if !errors.As(err, &e) || !e.Unknown {
		t.Errorf("%v: want an error that tells that the command may have run", err)
	}
	nonces := 0
	for _, arg := range (<-client.kept).Args() {
		if m, ok := arg.(interface{ MarshalBinary() ([]byte, error) }); ok {
			nonces++
			if _, err := m.MarshalBinary(); err != nil {
				t.Errorf("an argument cannot be written any more: %v", err)
			}
		}
	}
	if nonces != 1 {
		t.Errorf("%d arguments that can be withdrawn, want 1", nonces)
	}
}
