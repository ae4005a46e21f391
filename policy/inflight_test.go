package policy_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/redis/go-redis/v9"
)

// running has the requests of a Set that run.
type running struct {
	*testing.T
	set *policy.Set
}

// serving is a Set of a file that the test closes.
func serving(t *testing.T, text string, opts ...policy.Option) running {
	t.Helper()
	s, err := policy.Parse("limits.yaml", []byte(text), append([]policy.Option{policy.Log(slog.New(slog.DiscardHandler))}, opts...)...)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return running{t, s}
}

func (r running) begin(path string, allowed bool) (end func()) {
	r.Helper()
	q := floodgatetest.NewRequest("GET", path)
	d := r.set.Check(q)
	if d.Allowed != allowed {
		r.Fatalf("%s: %v", path, d)
	}
	if allowed != d.NeedsOutcome() {
		r.Errorf("%s: needs the outcome: %t", path, d.NeedsOutcome())
	}
	if !allowed {
		if denial := r.set.Deny(q, d); denial.Status != 429 {
			r.Errorf("%s: %+v", path, denial)
		}
		return func() {}
	}
	return func() { r.set.Settle(q, d, core.Outcome{Status: 200}) }
}

func (r running) held(want int64) {
	r.Helper()
	n := int64(0)
	for _, l := range r.set.InFlight() {
		n += l.Held()
	}
	if n != want {
		r.Errorf("%d slots are held, want %d", n, want)
	}
}

const reports = `
policies:
  - {name: reports, match: {paths: [/reports]}, key: path, in-flight: 2, limits: 3/h}
  - {name: all, in-flight: 3}
`

// A request takes its slots, then its hits, and gives the slots back if it is denied.
func TestInFlight(t *testing.T) {
	r := serving(t, reports)
	first, second := r.begin("/reports", true), r.begin("/reports", true)
	r.held(4)
	r.begin("/reports", false)
	r.held(4)
	other := r.begin("/other", true)
	r.begin("/other", false) // the slots of all
	r.held(5)
	first()
	first()
	r.held(3)
	third := r.begin("/reports", true)
	second()
	other()
	r.begin("/reports", false) // the fourth hit of three
	r.held(2)
	third()
	r.held(0)
	q := floodgatetest.NewRequest("GET", "/other")
	d := r.set.Check(q)
	if r.set.Settle(q, d, core.Outcome{}); d.Reason != core.ReasonWithinLimits || d.Rule() != "policies.all" {
		t.Errorf("no limits, only slots: %v", d)
	}
}

// A denied address takes no slot, and gets its own answer while all slots are held.
func TestInFlightOfADeniedAddress(t *testing.T) {
	r := serving(t, "policies: [{name: a, in-flight: 1, deny: [10.0.0.0/8]}]")
	end := r.begin("/", true)
	q := floodgatetest.NewRequest("GET", "/", floodgatetest.From("10.0.0.1"))
	if d := r.set.Check(q); d.Allowed || r.set.Deny(q, d).Status != 403 {
		t.Errorf("a denied address: %v", d)
	}
	r.held(1)
	end()
	r.held(0)
}

// Slots stay held when the file changes, and a changed number is in force at once.
func TestInFlightOfAChangedFile(t *testing.T) {
	r := serving(t, "policies: [{name: a, in-flight: 1}]")
	first := r.begin("/", true)
	if err := r.set.Replace([]byte("policies: [{name: a, in-flight: 2}]")); err != nil {
		t.Fatal(err)
	}
	second := r.begin("/", true)
	r.begin("/", false)
	first()
	second()
	r.held(0)
}

// A store that keeps slots shares them, also if the file has moved a policy into it. A store
// that does not is a mistake.
func TestInFlightInAStore(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close() //nolint:errcheck // the test is over
	var sets [2]running
	for i := range sets {
		sets[i] = serving(t, "policies: [{name: a, in-flight: 1}]", policy.WithStore(redisstore.New(client, redisstore.AnotherInstance())))
	}
	end := sets[0].begin("/", true)
	sets[1].begin("/", false)
	end()
	sets[1].begin("/", true)()

	const file = "name: moves\nstore: {redis: {address: '%s', timeout: 5s}}\npolicies: [{name: a, in-flight: 1, counting: %s}]"
	for i, counting := range []string{"shared", "local"} {
		sets[i] = serving(t, fmt.Sprintf(file, server.Addr, counting), policy.AnotherInstance())
	}
	ends := []func(){sets[0].begin("/", true), sets[1].begin("/", true)}
	must(t, sets[1].set.Replace(fmt.Appendf(nil, file, server.Addr, "shared")))
	sets[1].begin("/", false)
	ends[0]()
	end = sets[1].begin("/", true)
	sets[0].begin("/", false)
	end()
	ends[1]()

	_, err := policy.Parse("limits.yaml", []byte("policies: [{name: a, in-flight: 1}]"), policy.WithStore(noSlots{core.Must(core.NewMemory(core.MemoryConfig{}))}))
	if len(policy.Errors(err)) != 1 || !strings.Contains(err.Error(), "keeps no slots") {
		t.Errorf("of a store without slots: %v", err)
	}
}

// noSlots is a Memory that says that other processes count in it.
type noSlots struct{ *core.Memory }

func (s noSlots) Guarantees() core.Guarantees {
	g := s.Memory.Guarantees()
	g.Shared = true
	return g
}

// A request that ends by a panic or by its client holds no slot.
func TestInFlightOfRequestsThatEnd(t *testing.T) {
	session := policy.WithUser(func(core.Request) string { panic("no session") })
	log := policy.OnDisallowed(func(core.Request, core.Decision, core.Denial) core.Denial { panic("no log") })
	for policies, option := range map[string]policy.Option{
		"{name: a, in-flight: 3}, {name: b, key: user, in-flight: 3}":                 session,
		"{name: a, in-flight: 3}, {name: b, key: user, limits: 1/h}":                  session,
		"{name: a, in-flight: 3, limits: 9/h}, {name: b, limits: 0/h, dry-run: true}": log,
	} {
		r := serving(t, "policies: ["+policies+"]", option)
		func() {
			defer func() { _ = recover() }()
			if d := r.set.Check(floodgatetest.NewRequest("GET", "/")); d.Allowed {
				t.Errorf("%s: is allowed: %v", policies, d)
			}
		}()
		r.held(0)
	}

	r := serving(t, "policies: [{name: a, key: path, in-flight: 1}, {name: b, in-flight: 1, wait: 1m}]")
	end := r.begin("/", true)
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	if d := r.set.Check(floodgatetest.NewRequest("GET", "/other", floodgatetest.Context(ctx))); d.Allowed {
		t.Errorf("of a client that has gone: %v", d)
	}
	r.held(2)
	end()
	r.held(0)
}

// The cost of a request is that of its limits: a request takes one slot.
func TestInFlightAndSetCost(t *testing.T) {
	r := serving(t, "policies: [{name: a, match: {paths: [/a]}, in-flight: 5}, {name: b, match: {paths: [/b]}, in-flight: 5, cost: 4, limits: 10/h}]")
	for path, settles := range map[string]bool{"/a": false, "/b": true} {
		q := floodgatetest.NewRequest("GET", path)
		d := r.set.Check(q)
		if got := d.SetCost(7); got != settles {
			t.Errorf("%s: SetCost: %t", path, got)
		}
		r.held(1)
		r.set.Settle(q, d, core.Outcome{Status: 200})
		r.held(0)
	}
	if d, err := r.set.Limiter().Take(t.Context(), 0, core.Hit{Rule: "b"}); err != nil || d.Remaining != 3 {
		t.Errorf("after a cost of 7: %v, %v", d, err)
	}
}

// A dry run beside slots denies nothing, and Only applies the slots of its policies.
func TestInFlightBesideOthers(t *testing.T) {
	r := serving(t, "policies: [{name: a, in-flight: 1}, {name: b, limits: 0/h, dry-run: true}, {name: c, in-flight: 1, on-denied: {status: 503}}]")
	only, err := r.set.Only("b", "c")
	must(t, err)
	q := floodgatetest.NewRequest("GET", "/")
	d := only.Check(q)
	r.held(1)
	if denied := r.set.Check(q); only.Check(q).Allowed || r.set.Deny(q, denied).Status != 503 || r.set.PolicyOf(denied.Rule()) != "c" {
		t.Errorf("the slot of c is held twice, or another policy denies: %v", denied)
	}
	only.Settle(q, d, core.Outcome{Status: 200})
	r.held(0)
	r.begin("/", true)()
}

// After a file with a mistake nothing has changed; a policy that comes back finds its slots.
func TestInFlightOfAFileWithAMistake(t *testing.T) {
	const one = "policies: [{name: a, in-flight: 1}, {name: b, limits: 1/h}]"
	r := serving(t, one)
	end := r.begin("/", true)
	for name, text := range map[string]string{
		"too long":   "policies: [{name: a, in-flight: 2}, {name: b, limits: 9/h}, {name: " + strings.Repeat("n", 64) + ", in-flight: 1}]",
		"same names": "policies: [{name: a, in-flight: 2}, {name: b, limits: 9/h}, {name: policies.a, limits: 1/h}]",
	} {
		if err := r.set.Replace([]byte(text)); err == nil || !strings.Contains(err.Error(), "in-flight: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := r.set.Policies()[1].Rules[0].Limits[0].Quota; got != 1 {
		t.Errorf("a quota of %d is in force", got)
	}
	r.begin("/", false)
	for _, text := range []string{"policies: [{name: b, limits: 5/h}]", one} {
		if err := r.set.Replace([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	r.begin("/", false)
	end()
	r.held(0)
}
