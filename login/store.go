package login

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// checkStore returns an error if the Store does not promise what a guard needs.
func (c *Config) checkStore() error {
	if v := reflect.ValueOf(c.Store); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("%w: Store: the %T is nil", core.ErrConfig, c.Store)
	}
	g := c.Store.Guarantees()
	var errs []error
	if g.OnFailure == core.FailOpen {
		errs = append(errs, fmt.Errorf("%w: Store: %T: may allow attempts without counting them while its server does not answer (core.Guarantees.OnFailure is FailOpen): "+
			"use a store that decides locally or fails closed", core.ErrConfig, c.Store))
	}
	if !g.Exact && !c.AllowEventual {
		errs = append(errs, fmt.Errorf("%w: Store: %T: is not exact (core.Guarantees.Exact): attackers get more guesses through several instances: "+
			"set AllowEventual to accept that", core.ErrConfig, c.Store))
	}
	return errors.Join(errs...)
}

// openStore returns the store for the guard's counters, and a function that closes it
// if openStore has made it. The store is not shared, or it keeps a deadline and fails fast.
func (c *Config) openStore() (store core.Store, closeStore func() error, err error) {
	if c.Store == nil {
		m := core.Must(core.NewMemory(core.MemoryConfig{Clock: c.Clock}))
		return m, m.Close, nil
	}
	if g := c.Store.Guarantees(); !g.Shared || g.KeepsDeadline && g.FailsFast {
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
