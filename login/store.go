package login

import (
	"errors"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// checkStore refuses a Store whose traits are too weak for a login form. What a
// store does not promise it may not do.
func (c *Config) checkStore() error {
	t, err := core.TraitsOf(c.Store)
	if err != nil {
		return err
	}
	var errs []error
	if !t.NeverOpens {
		errs = append(errs, fmt.Errorf("%w: Store: %T: may open while what it depends on does not answer (core.Traits.NeverOpens is false): a login form is never open: "+
			"use resilient.ModeInProcess or resilient.ModeClosed; a store of your own needs a method Traits", core.ErrConfig, c.Store))
	}
	if !t.Exact && !c.AllowEventual {
		errs = append(errs, fmt.Errorf("%w: Store: %T: is not exact (core.Traits.Exact): guesses through several instances would add up: "+
			"AllowEventual accepts that; a store of your own needs a method Traits", core.ErrConfig, c.Store))
	}
	return errors.Join(errs...)
}

// openStore returns the store that the guard counts in, and what closes it if
// the guard has made it. Every store that it returns is counted in by this
// process alone, or has a deadline and fails fast.
func (c *Config) openStore() (store core.Store, closeStore func() error, err error) {
	if c.Store == nil {
		m, err := core.NewMemory(core.MemoryConfig{Clock: c.Clock})
		if err != nil {
			return nil, nil, err
		}
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

// inField puts the name of a field before each of the errors that err joins.
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
