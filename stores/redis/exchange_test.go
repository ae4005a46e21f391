package redisstore

import (
	"bytes"
	"context"
	"encoding"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// process is a client.
type process func(cmd redis.Cmder) error

func (p process) Process(_ context.Context, cmd redis.Cmder) error { return p(cmd) }

var errBroken = errors.New("broken by the test")

// items returns an item for each key, of a rule of their own.
func items(t *testing.T, s *Store, keys ...string) (some []namedItem) {
	rule := &newCounters(s, t.Name(), []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(10)}}}).rules[0]
	for _, k := range keys {
		some = append(some, namedItem{&core.Item{Cost: 1, Results: make([]core.Result, 1)}, rule, k})
	}
	return some
}

// inputOf returns the script's input, as it is written now.
func inputOf(t *testing.T, cmd redis.Cmder) []byte {
	for _, arg := range cmd.Args() {
		if m, ok := arg.(encoding.BinaryMarshaler); ok {
			b, err := m.MarshalBinary()
			if err != nil {
				t.Errorf("the input cannot be written: %v", err)
			}
			return bytes.Clone(b)
		}
	}
	t.Error("the command has no input")
	return nil
}

// Callers wait for exchanges before theirs that have no answer, for their patience
// and no longer: also if nobody waits for those exchanges any more.
func TestExchangesWithoutAnswerDoNotBlock(t *testing.T) {
	const stuck = 2 // as many as a line has under way at first
	entered, end := make(chan struct{}, stuck), make(chan struct{})
	s := New(process(func(cmd redis.Cmder) error {
		if cmd.Args()[argFirstKey] == "late" {
			return errBroken
		}
		entered <- struct{}{}
		<-end
		return errBroken
	}), Timeout(20*time.Second))
	defer close(end)
	hungUp, cancel := context.WithCancel(t.Context())
	cancel()
	for range stuck {
		if _, err := s.do(s.begin(hungUp), verbTake, items(t, s, "early")); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		<-entered
	}
	if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "late")); !errors.Is(err, errBroken) {
		t.Errorf("a call behind them ends with %v, want %v", err, errBroken)
	}
}

// A command that a server may run later is sent so many times again, and no more, also if it is
// that of one call: there are no others whose keys may be at fault.
func TestHowOftenACommandIsSentAgain(t *testing.T) {
	for reply, want := range map[string]int{
		"LOADING Redis is loading the dataset in memory":              1 + mostRepeats,
		"TRYAGAIN Multiple keys request during rehashing of slot":     1 + mostRepeats,
		"CROSSSLOT Keys in request don't hash to the same slot":       1,
		"NOPERM No permissions to access a key":                       1,
		"MISCONF Redis is configured to save RDB snapshots to a disk": 1,
	} {
		sent := 0
		s := New(process(func(redis.Cmder) error {
			if sent++; sent > 2*mostRepeats { // a test that fails has to end, too
				return errBroken
			}
			return scriptError(reply)
		}), Timeout(20*time.Second))
		s.gathers = false
		if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "k")); !errors.Is(err, core.ErrNotCharged) || sent != want {
			t.Errorf("%s: sent %d times, want %d; error %v", reply, sent, want, err)
		}
	}
}

// Callers wait for exchanges before theirs for an eighth of their time, and no longer than
// longestPatience.
func TestCallersArePatientForPartOfTheirTime(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{16 * time.Millisecond: 2 * time.Millisecond, time.Hour: longestPatience} {
		if got := New(nil, Timeout(timeout)).patience; got != want {
			t.Errorf("a Timeout of %v: %v, want %v", timeout, got, want)
		}
	}
}

// A command that failed stays as it was: whoever logs or traces commands may look at
// it later.
func TestACommandThatFailedStaysAsItWas(t *testing.T) {
	var failed redis.Cmder
	s := New(process(func(cmd redis.Cmder) error {
		failed = cmd
		return errBroken
	}))
	s.gathers = false
	if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "k")); !errors.Is(err, errBroken) {
		t.Fatalf("error %v", err)
	}
	if args := failed.Args(); args[argCommand] != evalsha || args[argFirstKey] != "k" {
		t.Errorf("after it has failed, it is %v", args)
	}
}

// A client that gathers commands may tell an error at once or in the command, and may
// write the command once more when its caller has long been told.
func TestErrorsOfAGatheringClient(t *testing.T) {
	for what, fail := range map[string]func(cmd redis.Cmder) error{
		"returned":       func(redis.Cmder) error { return errBroken },
		"in the command": func(cmd redis.Cmder) error { cmd.SetErr(errBroken); return nil },
	} {
		var failed redis.Cmder
		var input []byte
		s := New(process(func(cmd redis.Cmder) error {
			failed, input = cmd, inputOf(t, cmd)
			return fail(cmd)
		}))
		if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "k")); !errors.Is(err, errBroken) {
			t.Errorf("%s: error %v, want %v", what, err, errBroken)
		}
		if again := inputOf(t, failed); !bytes.Equal(again, input) {
			t.Errorf("%s: it is written as %x first and as %x later", what, input, again)
		}
	}
}

// The limits of a rule are sent once for all calls of a command.
func TestCallsShareTheirLimits(t *testing.T) {
	s := New(nil)
	x := &exchange{store: s}
	many, few := items(t, s, "a", "b", "c", "d"), items(t, s, "e")
	few[0].rule = &newCounters(s, "few", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(3)}}}).rules[0]
	for _, some := range [][]namedItem{many[:2], few, many[2:]} {
		x.calls = append(x.calls, s.newCall(s.begin(t.Context()), verbTake, some))
	}
	x.arm(t.Context(), x.script(), false)
	if got, want := len(x.args), argFirstKey+5+1+2; got != want {
		t.Errorf("%d arguments, want %d: %v", got, want, x.args)
	}
	for i, want := range []int{2, 3, 2} {
		for _, it := range x.calls[i].items {
			if it.place != want {
				t.Errorf("call %d: its limits are at %d, want %d", i, it.place, want)
			}
		}
	}
}

// Which keys of an operation are in one command.
func TestGroups(t *testing.T) {
	s := New(nil)
	all := items(t, s, "a", "b", "a")
	for layout, want := range map[uint32]int{anyKeys: 1, oneSlot: 2, eachKey: 3} {
		s.layout.Store(layout)
		if got := len(s.group(all)); got != want {
			t.Errorf("layout %d: %d groups, want %d", layout, got, want)
		}
	}
}

func TestNamesOfClasses(t *testing.T) {
	for c, want := range map[Class]string{ClassOther: "failed", ClassDamaged: "damaged", ClassDamaged + 1: "unknown class"} {
		if got := c.String(); got != want {
			t.Errorf("class %d is %q, want %q", c, got, want)
		}
	}
}

// The hash of the Redis Cluster specification, with its own example.
func TestSlots(t *testing.T) {
	if got := slotOf("123456789"); got != 0x31c3 {
		t.Errorf("slot %#x, want 0x31c3", got)
	}
}

// A take of keys of several slots is known to have charged nothing if it fails for the
// first slot, and not if it fails for a later one.
func TestATakeOfSeveralSlotsThatFails(t *testing.T) {
	real := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer real.Close() //nolint:errcheck // the test is over
	for i, failing := range []string{"a", "b"} {
		s := New(process(func(cmd redis.Cmder) error {
			if Verbs(cmd)[0] == "take" && cmd.Args()[argFirstKey] == failing {
				return errBroken
			}
			return real.Process(t.Context(), cmd)
		}), Timeout(20*time.Second))
		s.gathers = false
		s.layout.Store(oneSlot)
		some := items(t, s, "a", "b")
		_, err := s.takeApart(operation{context.Background(), time.Now().Add(20 * time.Second)}, verbTake, s.group(some))
		if !errors.Is(err, errBroken) || errors.Is(err, core.ErrNotCharged) != (i == 0) {
			t.Errorf("%s fails: error %v, not charged %v", failing, err, errors.Is(err, core.ErrNotCharged))
		}
	}
}
