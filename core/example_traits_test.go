package core_test

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// logged is a store around another. It gets Bind by embedding the interface, and
// needs a method Traits of its own.
type logged struct {
	core.Store
	traits core.Traits
}

func newLogged(inner core.Store) (logged, error) {
	t, err := core.TraitsOf(inner)
	return logged{inner, t}, err
}

func (l logged) Traits() core.Traits { return l.traits }

func ExampleTraitsOf() {
	store, err := newLogged(core.Must(core.NewMemory(core.MemoryConfig{})))
	if err != nil {
		fmt.Println(err)
		return
	}
	t := store.Traits()
	fmt.Println("exact:", t.Exact, "private:", t.Private, "opens without its server:", !t.NeverOpens)
	// Output: exact: true private: true opens without its server: false
}

func ExampleTraitsOf_nil() {
	var memory *core.Memory // forgotten
	_, err := newLogged(memory)
	fmt.Println(err)
	// Output: floodgate: configuration: Store: *core.Memory: is nil: must be a store
}

// A program that is one of several processes refuses to start if its limiter
// counts for this process alone.
func ExampleLimiter_Traits() {
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerMinute(5)}}},
	}))
	if limiter.Traits().Private {
		fmt.Println("the limiter needs a shared store")
	}
	// Output: the limiter needs a shared store
}
