package core

import (
	"testing"
	"unsafe"
)

type (
	ownHooks     struct{ DefaultHooks }
	pointerHooks struct{ DefaultHooks }
	auditHooks   struct{ DefaultHooks }
	deepHooks    struct{ *auditHooks }
	tagged       struct {
		Headers
		DefaultHooks
	}
	wrapping       struct{ Hooks }
	generic[T any] struct{ DefaultHooks }
	functional     func()
)

func (ownHooks) Cost(Request) (int64, error)                   { return 2, nil }
func (*pointerHooks) Cost(Request) (int64, error)              { return 2, nil }
func (auditHooks) OnDisallowed(Request, Decision) Denial       { return Denial{} }
func (generic[T]) Cost(Request) (int64, error)                 { return 2, nil }
func (functional) ShouldLimit(Request) bool                    { return true }
func (functional) KeyExtra(Request) (string, error)            { return "", nil }
func (functional) Cost(Request) (int64, error)                 { return 2, nil }
func (f functional) OnDisallowed(r Request, d Decision) Denial { return Denial{} }

func TestWhichHooksHaveACostOfTheirOwn(t *testing.T) {
	itself := &wrapping{}
	itself.Hooks = itself
	cost := func(Request) (int64, error) { return 2, nil }
	for name, row := range map[string]struct {
		hooks Hooks
		want  bool
	}{
		"the defaults":                       {DefaultHooks{}, false},
		"a pointer to the defaults":          {&DefaultHooks{}, false},
		"functions":                          {HookFuncs{}, false},
		"functions with a cost":              {HookFuncs{CostFunc: cost}, true},
		"a pointer to functions":             {&HookFuncs{CostFunc: cost}, true},
		"embedded defaults":                  {auditHooks{}, false},
		"a pointer":                          {&auditHooks{}, false},
		"own":                                {ownHooks{}, true},
		"own, a pointer":                     {&ownHooks{}, true},
		"own with a pointer receiver":        {&pointerHooks{}, true},
		"deep":                               {deepHooks{&auditHooks{}}, false},
		"wrapping the defaults":              {wrapping{Hooks: DefaultHooks{}}, false},
		"wrapping a pointer to the defaults": {&wrapping{Hooks: &auditHooks{}}, false},
		"wrapping own":                       {wrapping{Hooks: ownHooks{}}, true},
		"wrapping functions":                 {wrapping{Hooks: HookFuncs{CostFunc: cost}}, true},
		"wrapping functions without a cost":  {wrapping{Hooks: HookFuncs{}}, false},
		"generic":                            {generic[int]{}, true},
		"embedded behind another type":       {tagged{}, false},
		"a function":                         {functional(nil), true},
		"wrapping itself":                    {itself, true},
	} {
		if got := ownCost(row.hooks); got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
	}
}

// A record of this size costs the allocator less than a larger one.
func TestARecordFitsInto512Bytes(t *testing.T) {
	if size := unsafe.Sizeof(record{}); size > 512 {
		t.Errorf("a record has %d bytes, want 512 at most", size)
	}
}
