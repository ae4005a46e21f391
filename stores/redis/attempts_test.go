package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

// A server that does not know the script has run nothing: if the script cannot be sent then, it is known
// that nothing was charged.
func TestTheScriptThatCannotBeSent(t *testing.T) {
	var commands []any
	s := New(process(func(cmd redis.Cmder) error {
		commands = append(commands, cmd.Args()[argCommand])
		if len(commands) == 1 {
			inputOf(t, cmd)
			return scriptError("NOSCRIPT No matching script. Please use EVAL.")
		}
		return errBroken
	}), Timeout(20*time.Second))
	s.gathers = false
	_, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "k"))
	if !errors.Is(err, errBroken) || !errors.Is(err, core.ErrNotCharged) || !slices.Equal(commands, []any{evalsha, eval}) {
		t.Errorf("%v after the commands %v", err, commands)
	}
}

// Each attempt has a number of its own, so that the reply to an earlier one is not taken for the last one's.
func TestTheNumberOfAnAttempt(t *testing.T) {
	numbers := map[string]bool{}
	sent := 0
	s := New(process(func(cmd redis.Cmder) error {
		sent++
		numbers[string(inputOf(t, cmd)[:replyHead])] = true
		return scriptError("LOADING Redis is loading the dataset in memory")
	}), Timeout(20*time.Second))
	s.gathers = false
	if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "k")); !errors.Is(err, core.ErrNotCharged) || sent < 2 || len(numbers) != sent {
		t.Errorf("%v; %d numbers for %d attempts", err, len(numbers), sent)
	}
}

// While a command pauses before its next attempt, others are sent.
func TestACommandThatPausesLetsOthersThrough(t *testing.T) {
	var s *Store
	var attempts int
	paused, through, other := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s = OneAtATime(New(process(func(cmd redis.Cmder) error {
		if cmd.Args()[argFirstKey] == "other" {
			close(through)
			return errBroken
		}
		if attempts++; attempts == 1 {
			close(paused)
			for end := time.Now().Add(20 * time.Second); Waiting(s) != 1 && time.Now().Before(end); <-time.After(time.Millisecond) {
			}
			return scriptError("LOADING Redis is loading the dataset in memory")
		}
		select {
		case <-through:
		case <-time.After(10 * time.Second):
			t.Error("the other command was not sent while the first one paused")
		}
		return errBroken
	}), Timeout(time.Minute)))
	s.gathers = false
	go func() {
		<-paused
		_, err := s.do(s.begin(context.Background()), verbTake, items(t, s, "other"))
		other <- err
	}()
	if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "k")); !errors.Is(err, errBroken) || attempts != 2 {
		t.Errorf("%v after %d attempts", err, attempts)
	}
	if err := <-other; !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

// A caller that has let a command before its own through lets through the next one, if that command is stuck, too.
func TestACallerPushesMoreThanOnce(t *testing.T) {
	const stuck = 4
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
	heavy := make([]string, 1000) // more than what one command takes along
	for i := range heavy {
		heavy[i] = fmt.Sprint(i)
	}
	for range stuck {
		if _, err := s.do(s.begin(hungUp), verbTake, items(t, s, heavy...)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "late")); !errors.Is(err, errBroken) {
		t.Errorf("the call behind them ends with %v", err)
	}
	for i := range stuck { // a command may have begun, and not have come so far
		select {
		case <-entered:
		case <-time.After(20 * time.Second):
			t.Fatalf("%d commands were before it, want %d", i, stuck)
		}
	}
}

// A command lasts until the latest deadline of its calls, wherever that one is among them.
func TestTheDeadlineOfACommand(t *testing.T) {
	s := New(nil)
	soon, late := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	for _, ends := range [][]time.Time{{soon, late, soon}, {late, soon}, {soon, late}} {
		x := &exchange{store: s}
		for _, end := range ends {
			x.calls = append(x.calls, s.newCall(operation{t.Context(), end}, verbTake, items(t, s, "k")))
		}
		ctx, cancel := x.context()
		if got, _ := ctx.Deadline(); !got.Equal(late) {
			t.Errorf("deadlines %v: %v, want %v", ends, got, late)
		}
		cancel()
	}
}

// Hooks and logs of a gathering client may look at a command when its caller has long been told.
func TestACommandOfAGatheringClientStaysAsItWas(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	var commands []redis.Cmder
	s := New(process(func(cmd redis.Cmder) error {
		commands = append(commands, cmd)
		return client.Process(t.Context(), cmd)
	}), Timeout(20*time.Second))
	for _, key := range []string{"a", "b"} {
		if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, key)); err != nil {
			t.Fatal(err)
		}
		last := commands[len(commands)-1].Args()
		if last[argFirstKey] != key || fmt.Sprint(last[argFirstKey+1]) != "decisions" {
			t.Errorf("after the decision on %q, the command is %v", key, last)
		}
	}
	if first := commands[0].Args(); first[argFirstKey] != "a" {
		t.Errorf("in the end, the first command is %v", first)
	}
}

// An operation without items asks nobody.
func TestAnOperationWithoutItems(t *testing.T) {
	s := New(process(func(cmd redis.Cmder) error {
		t.Errorf("a command: %v", cmd)
		return errBroken
	}))
	b := newCounters(s, "l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(1)}}})
	batch := &core.Batch{}
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
		t.Errorf("allowed %t, %v", batch.Allowed, err)
	}
}

// Several servers may answer behind the address that a client of Sentinel names: finding the primary
// does not keep deadlines.
func TestAClientOfSentinelKeepsNoDeadlines(t *testing.T) {
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true})
	defer client.Close() //nolint:errcheck // the test is over
	if punctualOf(client) != nil {
		t.Error("it is said to keep deadlines")
	}
}

// A hook that is added while decisions are made is noticed within a second.
func TestALateHookIsNoticed(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	s := New(client, Timeout(20*time.Second))
	take := func() {
		if _, err := s.do(s.begin(t.Context()), verbTake, items(t, s, "k")); err != nil {
			t.Fatal(err)
		}
	}
	take()
	if !s.here.ready(time.Now()) || s.here.ready(time.Now().Add(time.Second)) {
		t.Error("a client without hooks is not looked at once a second")
	}
	h := new(counting)
	client.AddHook(h)
	s.here.next.Store(0) // a second later
	for range 3 {
		take()
	}
	if *h != 3 || s.here.ready(time.Now()) {
		t.Errorf("the hook saw %d of 3 decisions", *h)
	}
}

// counting counts commands.
type counting int

func (*counting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		*c++
		return next(ctx, cmd)
	}
}

// A look at keys of several slots charges nothing, also if the server has to tell its time first.
func TestALookAtACalendarInSeveralSlots(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	var verbs []string
	s := New(process(func(cmd redis.Cmder) error {
		verbs = append(verbs, Verbs(cmd)...)
		return client.Process(t.Context(), cmd)
	}), Timeout(20*time.Second))
	s.layout.Store(oneSlot)
	b := newCounters(s, "l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerMonth(10)}}})
	item := func(key string) core.Item {
		return core.Item{Key: []byte(key), Cost: 1, Results: make([]core.Result, 1)}
	}
	batch := &core.Batch{Items: []core.Item{item("a"), item("b")}}
	SetAhead(s, 400*24*time.Hour)
	if err := storetest.Do(t.Context(), b, core.OpPeek, batch); err != nil || !batch.Allowed || len(verbs) < 3 {
		t.Fatalf("allowed %t, %v, after %q", batch.Allowed, err, verbs)
	}
	if slices.ContainsFunc(verbs, func(v string) bool { return v != "peek" }) {
		t.Errorf("the script was called for %q", verbs)
	}
}

// A refund needs no window of the calendar: it is sent once, also if the process has taken the server's time for
// another one.
func TestARefundOfAMonthIsSentOnce(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	var verbs []string
	s := New(process(func(cmd redis.Cmder) error {
		verbs = append(verbs, Verbs(cmd)...)
		return client.Process(t.Context(), cmd)
	}), Timeout(20*time.Second))
	b := newCounters(s, "l", []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerMonth(10)}}})
	batch := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 4, Results: make([]core.Result, 1)}}}
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || !batch.Allowed {
		t.Fatal(batch.Allowed, err)
	}
	SetAhead(s, 400*24*time.Hour)
	verbs = nil
	if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil || !slices.Equal(verbs, []string{"refund"}) {
		t.Errorf("%v; the script was called for %q", err, verbs)
	}
	SetAhead(s, 0)
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Items[0].Results[0].Remaining != 6 {
		t.Errorf("%+v, %v; want 6 left", batch.Items[0].Results, err)
	}
}
