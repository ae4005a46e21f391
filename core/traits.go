package core

// Traits is what a [Store] promises. A store says it by a method
//
//	Traits() Traits
//
// and [TraitsOf] asks for it. The zero value is the weakest: what a field does
// not promise, nobody may rely on. A store around another passes on what the
// other promises and changes what it changes.
//
// core/storetest tests whether a store keeps what its Traits say.
type Traits struct {
	// Exact: all processes that share the counters never admit more together
	// than a limit allows, as long as what the store depends on answers.
	Exact bool
	// WhenGone is what the store does while what it depends on, such as a
	// server, does not answer.
	WhenGone WhenGone
	// KeepsDeadline: every operation returns within a deadline of the store's
	// own, even if what it depends on never answers and the context has no
	// deadline.
	KeepsDeadline bool
	// FailsFast: while what the store depends on does not answer, only a few
	// operations wait for it; the others return at once.
	FailsFast bool
	// Private: the counters belong to this Store value. No other process and
	// no other Store value counts in them.
	Private bool
	// OneStep: all items of a Batch are decided on and charged in one step.
	// Otherwise the store may charge some items and give the hits back when it
	// denies a later one; other takes may be denied because of these hits.
	OneStep bool
}

// WhenGone is what a store does while what it depends on does not answer.
type WhenGone uint8

const (
	// Opens means that it may allow requests that it has not counted.
	Opens WhenGone = iota
	// Counts means that it decides with counters of its own, and admits no
	// more than these allow.
	Counts
	// Closes means that Take returns an error.
	Closes
)

// String returns "opens", "counts" or "closes".
func (w WhenGone) String() string {
	switch w {
	case Opens:
		return "opens"
	case Counts:
		return "counts"
	case Closes:
		return "closes"
	}
	return "unknown"
}

// TraitsOf returns what a store promises: nothing, if it has no method Traits or
// is nil. A struct that embeds the interface Store has no method Traits; one
// that embeds a concrete store has that store's, unless it declares its own.
func TraitsOf(s Store) Traits {
	t, ok := s.(interface{ Traits() Traits })
	if !ok || CheckStore(s) != nil {
		return Traits{}
	}
	return t.Traits()
}

// Traits returns what a Memory promises. It depends on nothing that could be
// gone: once it is closed, Take returns [ErrClosed].
func (m *Memory) Traits() Traits {
	return Traits{Exact: true, WhenGone: Closes, KeepsDeadline: true, FailsFast: true, Private: true, OneStep: true}
}
