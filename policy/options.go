package policy

import (
	"log/slog"

	"github.com/floodgate-go/floodgate/core"
)

// Option is a choice of [Load], [Parse] and [Watch].
type Option func(*options)

type options struct {
	store    core.Store
	user     func(core.Request) string
	tier     func(core.Request) (string, error)
	denied   func(core.Request, core.Decision, core.Denial) core.Denial
	reloaded func(error)
	log      *slog.Logger
	apart    bool
}

func newOptions(opts []Option) *options {
	o := &options{log: slog.Default()}
	for _, option := range opts {
		option(o)
	}
	return o
}

// WithStore counts every policy in store, which stays its owner's to close. Lists
// of denied addresses do not count, and do not need it. The file's store section is
// checked as always, but neither opened nor are its passwords looked for.
func WithStore(store core.Store) Option { return func(o *options) { o.store = store } }

// WithUser says who the user of a request is, "" where there is none: the value
// of user in expressions, which without this option is an error of the file. f
// may be called concurrently and more than once for a request.
func WithUser(f func(r core.Request) string) Option { return func(o *options) { o.user = f } }

// WithTier says which tier a request is of, for rules that have tiers and no
// expression for them. A tier that a rule does not name, such as "", means
// default. Its errors mean what those of a [core.KeyFunc] mean. f may be called
// concurrently.
func WithTier(f func(r core.Request) (string, error)) Option {
	return func(o *options) { o.tier = f }
}

// OnDisallowed is called once for each refused request, and for each that a
// shadow policy would have refused (core.Decision.Rehearsal is set then, and
// what f returns is dropped): to write an audit log, or to answer something
// else. denial is what the file has the client get, and f returns what it gets.
// f may be called concurrently.
func OnDisallowed(f func(r core.Request, d core.Decision, denial core.Denial) core.Denial) Option {
	return func(o *options) { o.denied = f }
}

// OnReload is called after each attempt to take a changed file: err is nil where
// it is in force now, else it says why the former one has stayed. The file is
// not read again before f has returned; f must not call Set.Close, which waits
// for it.
func OnReload(f func(err error)) Option { return func(o *options) { o.reloaded = f } }

// AnotherInstance lets the store that the file describes count for policies of the
// same names as that of another Set of this process does. Without it, that is an
// error. It is for programs that are several instances at once, such as tests.
func AnotherInstance() Option { return func(o *options) { o.apart = true } }

// Log is where reloads and a store that does not answer are written to; without
// it, slog.Default().
func Log(log *slog.Logger) Option {
	return func(o *options) {
		if log != nil {
			o.log = log
		}
	}
}
