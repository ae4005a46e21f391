package policy

import (
	"fmt"
	"log/slog"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/nilcheck"
)

// Option is an option of [Load], [Parse] and [Watch].
type Option func(*options)

type options struct {
	store     core.Store
	user      func(core.Request) string
	tier      func(core.Request) (string, error)
	denied    func(core.Request, core.Decision, core.Denial) core.Denial
	reloaded  func(error)
	log       *slog.Logger
	observer  core.Observer
	quota     func(r core.Request, rule string, l core.Limit) (int64, bool, error)
	impatient bool
	apart     bool // tests: several Sets of this process count for the same policies
}

func newOptions(opts []Option) (*options, error) {
	o := &options{log: slog.Default()}
	for _, option := range opts {
		if option == nil {
			return nil, fmt.Errorf("%w: policy: an option is nil: write one such as policy.Log(log), or none", core.ErrConfig)
		}
		option(o)
	}
	if o.store != nil && nilcheck.IsNil(o.store) {
		return nil, fmt.Errorf("%w: policy: WithStore: the %T is nil", core.ErrConfig, o.store)
	}
	return o, nil
}

// WithStore makes every policy count in store, also with counting: local. The caller closes it. It
// is for a store that a file cannot name, such as one on PostgreSQL, or that the program uses too.
// Lists of denied addresses count nothing and do not need it. The file's store section is checked
// but not opened, and its passwords are not read.
func WithStore(store core.Store) Option { return func(o *options) { o.store = store } }

// WithQuota makes f return the quota of a request for a limit of a rule, in place of the limit's
// own: core.Unlimited counts and never denies. rule is a name as in [Set.Policies]. If found is
// false, the limit's own quota holds. A key that the file has quotas for keeps those. Errors of f
// mean the same as those of core.Rule.Quota. f is called, also concurrently, for each limit of each
// request: keep the table of customers in memory.
func WithQuota(f func(r core.Request, rule string, l core.Limit) (quota int64, found bool, err error)) Option {
	return func(o *options) { o.quota = f }
}

// WithUser makes f return the user of a request, "" if there is none: the value of user in
// expressions. Without this option, a file that uses it has an error. f may be called concurrently
// and more than once for a request.
func WithUser(f func(r core.Request) string) Option { return func(o *options) { o.user = f } }

// WithTier makes f return the tier of a request, for policies that have tiers and no expression for
// them. A tier that a policy does not name, such as "", means default. Errors of f mean the same as
// those of a [core.KeyFunc]. f may be called concurrently.
func WithTier(f func(r core.Request) (string, error)) Option {
	return func(o *options) { o.tier = f }
}

// OnDisallowed calls f once for each denied request: to write an audit log, or to answer something
// else. denial is the answer that the file describes, and f returns the answer that the client
// gets. f is also called for each request that a policy with dry-run: true would have denied:
// core.Decision.DryRun is then true, and the result of f is ignored. f may be called concurrently.
func OnDisallowed(f func(r core.Request, d core.Decision, denial core.Denial) core.Denial) Option {
	return func(o *options) { o.denied = f }
}

// OnReload calls f after each attempt to put a changed file in force. err is nil if the file is in
// force now; otherwise it says why the former file stays in force. The file is not read again
// before f returns.
func OnReload(f func(err error)) Option { return func(o *options) { o.reloaded = f } }

// WithObserver shows o every decision of the Set's limiter: see core.Config.Observer. o gets the
// new rules whenever a changed file is put in force. If the option is given twice, the last one
// counts: package observe joins observers.
func WithObserver(o core.Observer) Option { return func(opts *options) { opts.observer = o } }

// WithoutWaiting denies each request that would wait, whatever the field wait says. It is for
// programs that decide on requests of the past, and for tests of limits.
func WithoutWaiting() Option { return func(o *options) { o.impatient = true } }

// Log makes the Set log reloads, warnings and outages of its store to log. Without it, they are
// logged to slog.Default().
func Log(log *slog.Logger) Option {
	return func(o *options) {
		if log != nil {
			o.log = log
		}
	}
}
