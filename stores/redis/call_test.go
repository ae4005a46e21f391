package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// A call that is withdrawn when its command has been made, and not yet been written,
// is not charged, and the others of the command are. So is a call of a caller who has hung up, when its
// deadline has passed, and a line drops it.
func TestACallIsWithdrawnFromItsCommand(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	s := New(client, Timeout(20*time.Second), WithoutDenialCache())
	keys := items(t, s, "k0", "k1", "k2", "k3")
	if err := client.ScriptLoad(t.Context(), scriptOf(keys[0].rule.algorithms).text.(string)).Err(); err != nil {
		t.Fatal(err)
	}
	x := &exchange{store: s}
	all := make([]*call, 4)
	for i := range all {
		all[i] = s.newCall(s.begin(t.Context()), verbTake, keys[i:i+1])
	}
	x.calls = append(x.calls, all...)
	cmd := x.arm(t.Context(), false)
	if !all[1].withdraw() {
		t.Fatal("it cannot be withdrawn")
	}
	all[3].end = time.Now().Add(-time.Nanosecond)
	if late := all[3]; !late.gone() || !late.withdraw() {
		t.Error("a call may be sent after its deadline")
	}
	x.settle(t.Context(), cmd, s.process(t.Context(), cmd), 1)
	for i, c := range all {
		if err := c.err; (err != nil) != (i%2 == 1) || errors.Is(err, context.DeadlineExceeded) != (i%2 == 1) || len(c.done) != 1 {
			t.Errorf("call %d: error %v", i, err)
		}
		look := keys[i : i+1]
		look[0].cost = 0
		if _, err := s.ask(s.begin(t.Context()), verbPeek, look); err != nil {
			t.Fatal(err)
		}
		want := int64(9)
		if i%2 == 1 {
			want = 10
		}
		if got := look[0].of.Results[0].Remaining; got != want {
			t.Errorf("call %d: %d remain, want %d", i, got, want)
		}
	}
	x.calls = append(x.calls[:0], all[1])
	if _, err := x.MarshalBinary(); !errors.Is(err, errWithdrawn) || fmt.Sprint(x) != "decisions" {
		t.Errorf("a command without calls is written, as %v: error %v", x, err)
	}
}

// answering returns a client whose commands are answered by f.
func answering(t *testing.T, f redis.ProcessHook) *redis.Client {
	c := nowhere(t)
	c.AddHook(OnCommand(func(ctx context.Context, cmd redis.Cmder, _ redis.ProcessHook) error { return f(ctx, cmd) }))
	return c
}

// itemFor returns an item as counters.items does.
func itemFor(of *core.Item, rule *counterRule, name string) item {
	return item{of: of, rule: rule, name: name, limits: rule.limitsFor(of, nil), cost: of.Cost}
}

var errBroken = errors.New("broken by the test")

// items returns an item for each key, of a rule of their own.
func items(t *testing.T, s *Store, keys ...string) (some []item) {
	rule := &newCounters(s, t.Name(), []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(10)}}}).rules[0]
	for _, k := range keys {
		some = append(some, itemFor(&core.Item{Cost: 1, Results: make([]core.Result, 1)}, rule, k))
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

// A command that a server may run later is sent so many times again, with pauses that grow, and no more, also if it is
// that of one call: there are no others whose keys may be at fault. Each attempt has a number of its
// own, so that the reply to an earlier one is not taken for the last one's.
func TestHowOftenACommandIsSentAgain(t *testing.T) {
	for reply, want := range map[string]int{
		"LOADING Redis is loading the dataset in memory":              5,
		"MOVED 1 127.0.0.1:1":                                         5,
		"ASK 1 127.0.0.1:1":                                           5,
		"CLUSTERDOWN The cluster is down":                             5,
		"MASTERDOWN Link with MASTER is down":                         5,
		"TRYAGAIN Multiple keys request during rehashing of slot":     5,
		"CROSSSLOT Keys in request don't hash to the same slot":       1,
		"NOPERM No permissions to access a key":                       1,
		"MISCONF Redis is configured to save RDB snapshots to a disk": 1,
	} {
		sent, numbers := 0, map[string]bool{}
		s := New(answering(t, func(_ context.Context, cmd redis.Cmder) error {
			numbers[string(inputOf(t, cmd)[:replyHead])] = true
			if sent++; sent > 2*mostRepeats { // a test that fails has to end, too
				return errBroken
			}
			return scriptError(reply)
		}), Timeout(20*time.Second))
		begun := time.Now()
		if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "k")); !errors.Is(err, core.ErrNotCharged) || sent != want || len(numbers) != sent {
			t.Errorf("%s: sent %d times with %d numbers, want %d; error %v", reply, sent, len(numbers), want, err)
		}
		if took := time.Since(begun); want > 1 && took < 15*time.Millisecond {
			t.Errorf("%s: sent %d times in %v, without a pause", reply, sent, took)
		}
	}
	// If no time is left for a pause, the error is the server's and not a timeout.
	s := New(answering(t, func(_ context.Context, cmd redis.Cmder) error {
		x := cmd.Args()[argFirstKey+1].(*exchange)
		_, err := x.MarshalBinary()
		x.calls[0].end = time.Now().Add(time.Millisecond)
		return cmp.Or[error](err, scriptError("LOADING "))
	}))
	c := s.newCall(s.begin(t.Context()), verbTake, items(t, s, "k"))
	c.end = time.Now().Add(time.Hour)
	if s.send([]*call{c}); !strings.Contains(c.err.Error(), "LOADING") {
		t.Errorf("error %v", c.err)
	}
}

// At most 64 decisions share a command. Those that take long do not share one with many: other clients of
// the server would wait.
func TestLongDecisionsTravelAlone(t *testing.T) {
	for quota, want := range map[int64][]int{10: {1, 64, 5}, 100: {1, 20, 20, 20, 9}, core.MaxLogQuota: slices.Repeat([]int{1}, 70)} {
		first, sent := make(chan struct{}), []int{}
		s := New(answering(t, func(_ context.Context, cmd redis.Cmder) error {
			<-first
			sent = append(sent, cmd.Args()[argKeys].(int))
			return errBroken
		}), Timeout(time.Hour))
		line, all := s.newLine(mostCalls, 1, 0), make([]*call, 70)
		for i := range all {
			all[i] = s.newCall(s.begin(t.Context()), verbTake, itemOf(t, core.Limit{Quota: quota, Window: time.Hour, Algorithm: core.SlidingLog}))
			line.Go(all[i])
		}
		close(first)
		for _, c := range all {
			<-c.done
		}
		if !slices.Equal(sent, want) {
			t.Errorf("quota %d: %d share a command, want %d", quota, sent, want)
		}
	}
}

// A command lasts until the last deadline of its calls, whatever order they came in: a call of an
// operation with several commands comes late. The command that closes a connection lasts no longer.
// A call waits for the commands before it for an eighth of its time, at most 10 ms.
func TestACommandLastsForAllItsCalls(t *testing.T) {
	var ends []time.Time
	s := New(answering(t, func(ctx context.Context, cmd redis.Cmder) error {
		end, _ := ctx.Deadline()
		ends = append(ends, end)
		cmd.(exempt).SetVal("the reply to another command")
		return nil
	}))
	var all []*call
	begun := time.Now()
	for range 3 {
		all = append(all, s.newCall(s.begin(t.Context()), verbTake, items(t, s, "k")))
	}
	made := time.Since(begun)
	latest := all[2].end
	all[1].end, all[2].end = latest, all[1].end
	s.send(all)
	if !slices.Equal(ends, []time.Time{latest, latest}) {
		t.Errorf("the commands end at %v, want at %v", ends, latest)
	}
	if took := latest.Sub(begun); took < 100*time.Millisecond || took > 100*time.Millisecond+made {
		t.Errorf("without a Timeout, an operation has %v", took)
	}
	for timeout, want := range map[time.Duration]time.Duration{time.Hour: 10 * time.Millisecond, 40 * time.Millisecond: 5 * time.Millisecond} {
		if got := New(nil, Timeout(timeout)).patience; got != want {
			t.Errorf("Timeout(%v): a call waits for %v, want %v", timeout, got, want)
		}
	}
}

// A slot is not waited for longer than the Timeout, also if the client ignores its context.
func TestAClientThatIgnoresDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(answering(t, func(context.Context, redis.Cmder) error {
			time.Sleep(time.Hour)
			return errBroken
		}))
		begun := time.Now()
		if _, _, err := s.AcquireSlot(t.Context(), "l", inflight.Slot{Key: "k"}, 1, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(begun); took != DefaultTimeout {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Hour)
	})
}

// A reply that proves that a command has not run: if it cannot be sent again then, it is known that
// nothing was charged. A server that does not know the script gets it. Calls may be sent one by one.
func TestACommandThatCannotBeSentAgain(t *testing.T) {
	for reply, want := range map[string][]any{
		"NOSCRIPT No matching script. Please use EVAL.": {evalsha, eval}, "LOADING Redis is": {evalsha, evalsha},
		"CROSSSLOT Keys in": {evalsha, evalsha, evalsha}, "NOPERM No permissions": {evalsha, evalsha, evalsha},
	} {
		commands := make(chan any, 3)
		s := New(answering(t, func(_ context.Context, cmd redis.Cmder) error {
			if commands <- cmd.Args()[argCommand]; len(commands) > 1 {
				return errBroken
			}
			inputOf(t, cmd)
			return scriptError(reply)
		}), Timeout(20*time.Second))
		var all []*call
		for range len(want) - 1 {
			all = append(all, s.newCall(s.begin(t.Context()), verbTake, items(t, s, "k")))
		}
		s.send(slices.Clone(all))
		for _, c := range all {
			if _, err := c.wait(); !errors.Is(err, errBroken) || !errors.Is(err, core.ErrNotCharged) {
				t.Errorf("%s: error %v", reply, err)
			}
		}
		for _, command := range want {
			if got := <-commands; got != command {
				t.Errorf("%s: the command %v, want %v", reply, got, command)
			}
		}
	}
}

// A decision alone waits on its caller's goroutine if the client keeps deadlines, and on another one
// if anything in the client might not.
func TestWhichClientsKeepDeadlines(t *testing.T) {
	sentinels := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true})
	defer sentinels.Close() //nolint:errcheck // the test is over
	if keepsDeadlines(sentinels.Options()) {
		t.Error("Sentinels: several servers may answer behind the address")
	}
	for name, c := range map[string]struct {
		options redis.Options
		keeps   bool
	}{
		"go-redis's default":   {redis.Options{}, false},
		"keeps deadlines":      {redis.Options{}, true},
		"never times out":      {redis.Options{ReadTimeout: -1}, true},
		"no read deadlines":    {redis.Options{ReadTimeout: -2, WriteTimeout: time.Second}, false},
		"no write deadlines":   {redis.Options{WriteTimeout: -2}, false},
		"OnConnect":            {redis.Options{OnConnect: func(context.Context, *redis.Conn) error { return nil }}, false},
		"credentials provider": {redis.Options{CredentialsProvider: func() (string, string) { return "", "" }}, false},
		"with a context":       {redis.Options{CredentialsProviderContext: func(context.Context) (string, string, error) { return "", "", nil }}, false},
		"that stream": {redis.Options{StreamingCredentialsProvider: struct {
			auth.StreamingCredentialsProvider
		}{}}, false},
		"limiter": {redis.Options{Limiter: struct{ redis.Limiter }{}}, false},
	} {
		c.options.ContextTimeoutEnabled = name != "go-redis's default"
		client := redis.NewClient(&c.options)
		if keepsDeadlines(client.Options()) != c.keeps {
			t.Errorf("%s: keeps deadlines %t", name, !c.keeps)
		}
		_ = client.Close()
	}
}
