package redisstore

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the script
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/inflight"
)

//go:embed slots.lua
var slotsText string

var slotsScript = redis.NewScript(slotsText)

var _ inflight.Store = (*Store)(nil)

// AcquireSlot implements [inflight.Store]. The keys are fgs1:{limiter}: and a hash of the slot's
// key, so all slots of a limiter are in one hash slot of a cluster.
func (s *Store) AcquireSlot(ctx context.Context, limiter string, slot inflight.Slot, most int64, lease time.Duration) (held int64, ok bool, err error) {
	reply, err := s.slotsCommand(ctx, "acquire", limiter, []inflight.Slot{slot}, lease, most)
	if err != nil {
		return 0, false, err
	}
	of, number, _ := strings.Cut(reply, " ")
	held, err = strconv.ParseInt(number, 10, 64)
	if of != strconv.FormatUint(slot.ID, 36) || err != nil {
		return 0, false, &Error{Unknown: true, Err: fmt.Errorf("%q is the reply to another command", reply)}
	}
	return held, held >= 0, nil
}

// RenewSlots implements [inflight.Store]: with one command.
func (s *Store) RenewSlots(ctx context.Context, limiter string, slots []inflight.Slot, lease time.Duration) error {
	_, err := s.slotsCommand(ctx, "renew", limiter, slots, lease, 0)
	return err
}

// ReleaseSlots implements [inflight.Store]: with one command.
func (s *Store) ReleaseSlots(ctx context.Context, limiter string, slots []inflight.Slot) error {
	_, err := s.slotsCommand(ctx, "release", limiter, slots, 0, 0)
	return err
}

// slotsCommand runs the script on the keys of some slots.
func (s *Store) slotsCommand(ctx context.Context, verb, limiter string, slots []inflight.Slot, lease time.Duration, most int64) (string, error) {
	if err := s.ready(); err != nil {
		return "", err
	}
	args := []any{evalsha, slotsScript.Hash(), len(slots)}
	for _, slot := range slots {
		sum := sha256.Sum256([]byte(slot.Key))
		args = append(args, "fgs1:{"+limiter+"}:"+base64.RawURLEncoding.EncodeToString(sum[:16]))
	}
	args = append(args, verb, lease.Milliseconds(), most)
	for _, slot := range slots {
		args = append(args, strconv.FormatUint(slot.ID, 36))
	}
	reply, err := bounded(ctx, s, func(ctx context.Context) (string, error) {
		cmd := newCommand(ctx, args)
		err := s.client.Process(ctx, cmd)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			args[argCommand], args[argScript] = eval, slotsText
			cmd = newCommand(ctx, args)
			err = s.client.Process(ctx, cmd)
		}
		if err != nil {
			return "", err
		}
		return cmd.Text()
	})
	if err != nil {
		return "", classify(err, true)
	}
	return reply, nil
}
