package core_test

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// logged is a store around another. Embedding the interface gives it Bind; what
// it promises it has to say itself.
type logged struct{ core.Store }

func newLogged(inner core.Store) (logged, error) {
	if err := core.CheckStore(inner); err != nil {
		return logged{}, err
	}
	return logged{inner}, nil
}

func (l logged) Traits() core.Traits { return core.TraitsOf(l.Store) }

func ExampleTraitsOf() {
	store, err := newLogged(core.Must(core.NewMemory(core.MemoryConfig{})))
	if err != nil {
		fmt.Println(err)
		return
	}
	t := core.TraitsOf(store)
	fmt.Println("exact:", t.Exact, "private:", t.Private, "without its server it", t.WhenGone)
	// Output: exact: true private: true without its server it closes
}

func ExampleCheckStore() {
	var memory *core.Memory // forgotten
	_, err := newLogged(memory)
	fmt.Println(err)
	// Output: floodgate: configuration: Store: *core.Memory: is nil: must be a store
}
