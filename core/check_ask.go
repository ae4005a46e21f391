package core

import (
	"errors"
	"fmt"
	"log/slog"
)

// askChoice asks which rules are for the request.
func (a *asking) askChoice(r Request) (err error) {
	a.chosen, err = a.snap.choose(a.chosen[:0], r)
	if errors.Is(err, SkipRule) {
		a.chosen, err = a.chosen[:0], nil
	}
	if a.lost = err != nil; a.lost {
		return fmt.Errorf("choosing the rules (Select): %w", err)
	}
	former := -1
	for _, i := range a.chosen {
		if i <= former || i >= len(a.snap.rules) {
			a.lost = true
			return fmt.Errorf("choosing the rules (Select): %v: want indexes of the %d rules in ascending order", a.chosen, len(a.snap.rules))
		}
		former = i
	}
	return nil
}

func (a *asking) askExtra(r Request) (err error) {
	if a.extra, err = a.snap.hooks.KeyExtra(r); err != nil {
		return fmt.Errorf("KeyExtra: %w", err)
	}
	return nil
}

func (a *asking) askCost(r Request) error {
	cost, err := checkedCost(a.snap.hooks.Cost(r))
	if err != nil {
		return fmt.Errorf("Cost: %w", err)
	}
	a.cost = cost
	return nil
}

// costOf returns what the request is worth to a rule: 1 after an error, as a
// request that is at fault counts too.
func (a *asking) costOf(r Request, rule int) (int64, error) {
	f := a.snap.rules[rule].Cost
	if f == nil {
		return a.cost, nil
	}
	cost, err := checkedCost(f(r))
	if err != nil {
		return 1, fmt.Errorf("cost of rule %q: %w", a.snap.rules[rule].Name, err)
	}
	return cost, nil
}

func checkedCost(cost int64, err error) (int64, error) {
	if err == nil && cost < 0 {
		err = fmt.Errorf("%d: %w", cost, ErrNegativeCost)
	}
	return cost, err
}

func (a *asking) askKey(r Request, rule int) error {
	from := len(a.keys)
	if added, err := a.addKey(r, rule); !added {
		return err
	}
	cost, err := a.costOf(r, rule)
	if err == nil || errors.Is(err, ErrBadRequest) {
		a.addItem(rule, from, cost)
		if err == nil {
			err = a.askQuotas(r, rule)
		}
	}
	return err
}

// addKey appends the key of a rule to keys. added is false if the rule has no key function,
// or if the function has returned an error.
func (a *asking) addKey(r Request, rule int) (added bool, err error) {
	f := a.snap.rules[rule].Key
	if f == nil { // only Take uses the rule
		return false, nil
	}
	from := len(a.keys)
	// The key function gets an empty slice with room behind it: whatever it
	// does with it, the keys of other rules stay.
	a.probe.rule = rule
	key, err := f(a.keys[from:from], r)
	a.probe.rule = aHook
	switch {
	case err == nil:
		if keyless := a.snap.rules[rule].keyless; keyless.Load() < keylessRequests {
			keyless.Store(keylessRequests)
		}
		a.keys = closeKey(append(a.keys[:from], key...), from, a.extra)
		return true, nil
	case errors.Is(err, SkipRule):
		if err == SkipRule && (!a.probe.wanted || a.probe.open) { //nolint:errorlint // one that wraps it is meant
			a.skipped(r, rule)
		}
		return false, nil
	case errors.Is(err, errBodyLater):
		return false, err // a.wants drops it
	default:
		return false, fmt.Errorf("key of rule %q: %w", a.snap.rules[rule].Name, err)
	}
}

// keylessRequests is how many requests in a row, from the first on, a rule must skip before
// the log says so.
const keylessRequests = 100

// skipped logs once that the first requests of a rule have had no key: such a rule limits
// nobody. It counts until one has had a key.
func (a *asking) skipped(r Request, rule int) {
	keyless := a.snap.rules[rule].keyless
	if keyless.Load() >= keylessRequests || keyless.Add(1) != keylessRequests {
		return
	}
	a.snap.logger().LogAttrs(r.Context(), slog.LevelWarn, "floodgate: a rule limits nobody: its key function has returned no key for its first 100 requests. "+
		"If a middleware such as the authentication sets the key, mount the limiter inside that middleware", slog.String("rule", a.snap.rules[rule].Name))
}
