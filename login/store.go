package login

import (
	"errors"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// checkStore returns an error if the Store does not have the traits that a guard needs.
func (c *Config) checkStore() error {
	t, err := core.TraitsOf(c.Store)
	if err != nil {
		return err
	}
	var errs []error
	if !t.NeverOpens {
		errs = append(errs, fmt.Errorf("%w: Store: %T: may allow attempts without counting them while its server does not answer (core.Traits.NeverOpens is false): "+
			"use resilient.ModeInProcess or resilient.ModeClosed; a store of your own needs a method Traits that returns NeverOpens", core.ErrConfig, c.Store))
	}
	if !t.Exact && !c.AllowEventual {
		errs = append(errs, fmt.Errorf("%w: Store: %T: is not exact (core.Traits.Exact): attackers get more guesses through several instances: "+
			"set AllowEventual to accept that; a store of your own needs a method Traits that returns Exact", core.ErrConfig, c.Store))
	}
	return errors.Join(errs...)
}

// openStore returns the store for the guard's counters, and a function that closes it
// if openStore has made it. The store is private to this process, or keeps a deadline
// and fails fast.
func (c *Config) openStore() (store core.Store, closeStore func() error, err error) {
	if c.Store == nil {
		m := core.Must(core.NewMemory(core.MemoryConfig{Clock: c.Clock}))
		return m, m.Close, nil
	}
	if t, _ := core.TraitsOf(c.Store); t.Private || t.KeepsDeadline && t.FailsFast {
		return c.Store, func() error { return nil }, nil // its owner closes it
	}
	if c.Resilience.Clock == nil {
		c.Resilience.Clock = c.Clock
	}
	if c.Resilience.Log == nil {
		c.Resilience.Log = c.Log
	}
	r, err := resilient.New(c.Store, c.Resilience)
	if err != nil {
		return nil, nil, inField("Resilience", err)
	}
	return r, r.Close, nil
}

// inField adds the name of a field to each of the errors that err joins.
func inField(name string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("field %s: %w", name, err)
	}
	var errs []error
	for _, one := range joined.Unwrap() {
		errs = append(errs, inField(name, one))
	}
	return errors.Join(errs...)
}
