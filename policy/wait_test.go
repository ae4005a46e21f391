package policy_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/policy"
)

// waitsFor parses a file and makes requests one after the other, without waiting for their
// ends. It returns how long each of them has waited, -1 for those that were denied.
func waitsFor(t *testing.T, text string, n int, opts ...policy.Option) []time.Duration {
	t.Helper()
	all := make([]time.Duration, n)
	synctest.Test(t, func(t *testing.T) {
		set, err := policy.Parse("f", []byte(text), opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close() //nolint:errcheck // the test is over
		var over sync.WaitGroup
		for i := range n {
			over.Go(func() {
				begun := time.Now()
				d := set.Check(&explained{address: "10.0.0.1:5"})
				if all[i] = time.Since(begun); !d.Allowed {
					all[i] = -1 - all[i]
				}
			})
			synctest.Wait()
		}
		over.Wait()
	})
	return all
}

// A request waits as long as all policies that deny it let it.
func TestRequestsWaitAsThePoliciesSay(t *testing.T) {
	const two = "{quota: 1, window: 2s, algorithm: fixed_window}"
	for name, c := range map[string]struct {
		text string
		want [3]time.Duration // -1: denied at once
	}{
		"one":                            {"policies: [{name: a, limits: " + two + ", wait: 2s}]", [3]time.Duration{0, 2 * time.Second, -1}},
		"longer":                         {"policies: [{name: a, limits: " + two + ", wait: 4s}]", [3]time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"each rule":                      {"policies: [{name: a, wait: 4s, rules: [{name: r, limits: 9/h}, {name: s, limits: " + two + "}]}]", [3]time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"each tier":                      {"policies: [{name: a, wait: 4s, tier: method, tiers: {default: " + two + "}}]", [3]time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"shorter":                        {"policies: [{name: a, limits: " + two + ", wait: 1s}]", [3]time.Duration{0, -1, -1}},
		"none":                           {"policies: [{name: a, limits: " + two + "}]", [3]time.Duration{0, -1, -1}},
		"a dry run":                      {"policies: [{name: a, limits: " + two + ", wait: 9s, dry-run: true}]", [3]time.Duration{}},
		"beside a dry run":               {"policies: [{name: a, limits: " + two + ", wait: 2s}, {name: b, limits: 1/h, wait: 9s, dry-run: true}]", [3]time.Duration{0, 2 * time.Second, -1}},
		"one that denies and waits less": {"policies: [{name: a, limits: " + two + ", wait: 9s}, {name: b, limits: " + two + ", wait: 1s}]", [3]time.Duration{0, -1, -1}},
		"one that denies and waits not":  {"policies: [{name: a, limits: " + two + ", wait: 9s}, {name: b, limits: " + two + "}]", [3]time.Duration{0, -1, -1}},
		"one that allows and waits not":  {"policies: [{name: a, limits: " + two + ", wait: 9s}, {name: b, limits: 9/s}]", [3]time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"a second one that denies":       {"policies: [{name: a, limits: " + two + ", wait: 9s}, {name: b, limits: " + two + ", wait: 9s}]", [3]time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"no room of a key":               {"{local: {max-waiting-of-key: 1}, policies: [{name: a, limits: " + two + ", wait: 9s}]}", [3]time.Duration{0, 2 * time.Second, -1}},
		"no room":                        {"{local: {max-waiting: 1}, policies: [{name: a, limits: " + two + ", wait: 9s}]}", [3]time.Duration{0, 2 * time.Second, -1}},
		"a denied address":               {"policies: [{name: a, limits: " + two + ", wait: 9s, deny: [10.0.0.0/8]}]", [3]time.Duration{-1, -1, -1}},
	} {
		if got := waitsFor(t, c.text, 3); [3]time.Duration(got) != c.want {
			t.Errorf("%s: waited %v, want %v", name, got, c.want)
		}
	}
	got := waitsFor(t, "policies: [{name: a, limits: "+two+", wait: 9s}]", 3, policy.WithoutWaiting())
	if [3]time.Duration(got) != [3]time.Duration{0, -1, -1} {
		t.Errorf("without waiting: waited %v", got)
	}
}

// A denied address takes no room in the line, and is denied at once while others wait.
func TestADeniedAddressIsNotInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := policy.Parse("f", []byte("policies: [{name: a, limits: {quota: 1, window: 2s, algorithm: fixed_window}, wait: 9s}, {name: b, limits: 9/s, deny: [10.0.0.0/8]}]"))
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close() //nolint:errcheck // the test is over
		set.Check(&explained{address: "192.0.2.1:5"})
		go set.Check(&explained{address: "192.0.2.1:5"})
		synctest.Wait()
		begun := time.Now()
		if d := set.Check(&explained{address: "10.0.0.1:5"}); d.Allowed || set.PolicyOf(d.Rule()) != "b" || time.Since(begun) != 0 {
			t.Errorf("%v of rule %q after %v", d, d.Rule(), time.Since(begun))
		}
		time.Sleep(time.Minute)
	})
}

// A file that is put in force changes how long requests wait; the set says it.
func TestAWaitChangesWithTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "policies: [{name: a, limits: {quota: 1, window: 2s, algorithm: fixed_window}, wait: 9s}]"
		set, err := policy.Parse("f", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close() //nolint:errcheck // the test is over
		set.Check(&explained{})
		if d := set.Check(&explained{}); !d.Allowed || d.Waited() != 2*time.Second {
			t.Errorf("%v after %v", d, d.Waited())
		}
		if got := set.Policies()[0].Wait; got != 9*time.Second {
			t.Errorf("the policy waits %v", got)
		}
		if got := set.Explain(&explained{})[0].Wait; got != 9*time.Second {
			t.Errorf("the explanation waits %v", got)
		}
		if err := set.Replace([]byte("policies: [{name: a, limits: {quota: 1, window: 2s, algorithm: fixed_window}, wait: 9s, dry-run: true}]")); err != nil {
			t.Fatal(err)
		}
		if got := set.Explain(&explained{})[0].Wait; got != 0 {
			t.Errorf("a dry run waits %v", got)
		}
		if err := set.Replace([]byte("policies: [{name: a, limits: {quota: 1, window: 2s, algorithm: fixed_window}}]")); err != nil {
			t.Fatal(err)
		}
		set.Check(&explained{}) // what is put in force counts anew
		if d := set.Check(&explained{}); d.Allowed || d.Waited() != 0 {
			t.Errorf("%v after %v", d, d.Waited())
		}
	})
}
