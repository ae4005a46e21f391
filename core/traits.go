package core

// Traits is what a [Store] promises. A store that promises anything has a method
//
//	Traits() Traits
//
// which [TraitsOf] calls. A field that is true is a promise; do not rely on what
// is not promised. A store around another returns the other's traits, less
// what it does not keep, and more if it adds a promise.
//
// core/storetest tests whether a store keeps its promises.
type Traits struct {
	// Exact: all processes that share the counters never admit more together
	// than a limit allows, as long as what the store depends on answers.
	Exact bool
	// NeverOpens: while what the store depends on, such as a server, does not
	// answer, the store allows no request that it has not counted. If it does not
	// promise Closes, it decides with counters of its own, and admits no more than
	// these allow.
	NeverOpens bool
	// Closes: while what the store depends on does not answer, Take returns an
	// error. A store that promises this promises NeverOpens too.
	Closes bool
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

// TraitsOf returns what a store promises: nothing, if it has no method Traits. A
// struct that embeds the interface Store has no method Traits; one that embeds a
// concrete store has that store's, unless it declares its own.
//
// The error wraps [ErrConfig] if s cannot be used: it is nil, it is an interface
// that holds a nil pointer, map, slice, channel or function, or its Bind is that
// of an embedded store which is nil. A store around another calls TraitsOf when
// it is made; [New] does too.
func TraitsOf(s Store) (Traits, error) {
	if err := checkStore(s); err != nil {
		return Traits{}, err
	}
	if t, ok := s.(interface{ Traits() Traits }); ok {
		return t.Traits(), nil
	}
	return Traits{}, nil
}

// Traits returns what a Memory promises. It depends on nothing that could be
// gone: once it is closed, Take returns [ErrClosed].
func (m *Memory) Traits() Traits {
	return Traits{Exact: true, NeverOpens: true, Closes: true, KeepsDeadline: true, FailsFast: true, Private: true, OneStep: true}
}
