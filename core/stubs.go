package core

import (
	"context"
	"iter"
	"time"
)

type detail struct{}

// NeedsOutcome says that a rule wants to know what became of the request: the adapter calls Settle after the handler.
func (d Decision) NeedsOutcome() bool { panic("stub") }

// Limits yields the status of every limit that applied, in the order of rules and limits.
func (d Decision) Limits() iter.Seq[LimitStatus] { panic("stub") }

// StoredKey returns the name under which stores keep the counter of the deciding rule's key (hashed, safe to log).
func (d Decision) StoredKey() string { panic("stub") }

// AppendHeaders appends the response header lines of the decision (RateLimit-Policy, RateLimit, ... and Retry-After where refused) to dst; names are in canonical MIME form.
func (d Decision) AppendHeaders(dst []Header) []Header { panic("stub") }

// String explains the decision in one sentence.
func (d Decision) String() string { panic("stub") }

// DefaultDenial is the problem+json answer (429, 400, 503).
func DefaultDenial(r Request, d Decision) Denial { panic("stub") }

// Rule is a key function and the limits that apply to each of its keys.
type Rule struct {
	Name   string
	Key    KeyFunc
	Limits []Limit
	Counts func(Outcome) bool // nil: every request counts
	Clears func(Outcome) bool
}

// Headers chooses the rate limit headers of responses.
type Headers uint8

const (
	HeadersDraft    Headers = 0 // RateLimit-Policy and RateLimit, draft-ietf-httpapi-ratelimit-headers-10
	HeadersOff      Headers = 1 << iota
	HeadersDraft10          // the same as zero, for combining
	HeadersDraft03          // RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset
	HeadersXSeconds         // X-RateLimit-Limit/-Remaining/-Reset, reset in seconds from now
	HeadersXMillis          // reset in milliseconds from now
	HeadersXEpoch           // reset as Unix time in seconds
)

type Config struct {
	Name      string
	Rules     []Rule
	Store     Store
	Hooks     Hooks
	Headers   Headers
	Rehearsal bool
}

type Limiter struct{}

func New(c Config) (*Limiter, error) { panic("stub") }
func Must[T any](v T, err error) T   { panic("stub") }

// Hit names a counter by rule and key.
type Hit struct{ Rule, Key string }

func (l *Limiter) Take(ctx context.Context, cost int64, hits ...Hit) (Decision, error) { panic("stub") }
func (l *Limiter) Peek(ctx context.Context, cost int64, hits ...Hit) (Decision, error) { panic("stub") }
func (l *Limiter) Refund(ctx context.Context, d Decision) error                        { panic("stub") }
func (l *Limiter) Reset(ctx context.Context, hits ...Hit) error                        { panic("stub") }
func (l *Limiter) Check(r Request) Decision                                            { panic("stub") }
func (l *Limiter) Deny(r Request, d Decision) Denial                                   { panic("stub") }
func (l *Limiter) Settle(r Request, d Decision, o Outcome)                             { panic("stub") }
func (l *Limiter) Mount() int                                                          { panic("stub") }
func (l *Limiter) Reconfigure(c Config) error                                          { panic("stub") }

// Limits parses "10/s, 120/m, 240/h".
func Limits(text string) ([]Limit, error) { panic("stub") }

// MemoryConfig configures NewMemory; the zero value works.
type MemoryConfig struct {
	MaxKeys int              // 0: 1,000,000
	Clock   func() time.Time // nil: the process's monotonic clock
}

type Memory struct{}

func NewMemory(c MemoryConfig) (*Memory, error)                         { panic("stub") }
func (m *Memory) Bind(limiter string, rules []StoreRule) (Bound, error) { panic("stub") }
func (m *Memory) Len() int                                              { panic("stub") }
func (m *Memory) Close() error                                          { panic("stub") }
