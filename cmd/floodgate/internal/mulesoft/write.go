package mulesoft

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// Result is a policy file.
type Result struct {
	// Text is the file. It has a comment for each difference from the original.
	Text []byte
	// Lost are the things that have no equivalent.
	Lost []string
}

// ErrNothing is wrapped by the error of [Import] for a file of which no policy can be
// translated.
var ErrNothing = errors.New("no policy can be translated")

// Import translates the rate limiting policies of a MuleSoft file. The result
// is a policy file that loads. The error tells why there is no result.
func Import(file []byte) (Result, error) {
	f, err := read(file)
	if err != nil {
		return Result{}, err
	}
	w := &writer{names: map[string]bool{}, blocks: map[bool]bool{}, shared: f.redis != nil, severalAPIs: severalAPIs(f.policies)}
	for _, other := range f.others {
		w.lose("", other+" is not translated")
	}
	var policies strings.Builder
	for _, s := range f.policies {
		policies.WriteString(w.policy(s))
	}
	if policies.Len() == 0 {
		if len(w.lost) == 0 {
			return Result{}, fmt.Errorf("%w: there is no policyRef (want policyRef: {name: rate-limiting-flex} and config)", ErrNothing)
		}
		return Result{}, fmt.Errorf("%w: %s", ErrNothing, strings.Join(w.lost, "; "))
	}
	head := w.store(f.redis)
	var text bytes.Buffer
	text.WriteString("# Written by floodgate import from a file of MuleSoft's.\n")
	for _, line := range w.head {
		text.WriteString("# " + line + "\n")
	}
	text.WriteString(head + "policies:\n" + policies.String())
	if err := loads(text.String()); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrNothing, err)
	}
	return Result{text.Bytes(), w.lost}, nil
}

var quiet = slog.New(slog.DiscardHandler)

// loads returns why a policy file does not load.
func loads(text string) error {
	memory, err := core.NewMemory(core.MemoryConfig{MaxKeys: 1})
	if err != nil {
		return err
	}
	set, err := policy.Parse("the translation", []byte(text), policy.WithStore(memory), policy.Log(quiet))
	if err == nil {
		return errors.Join(set.Close(), memory.Close())
	}
	var texts []string // without the places, which the user does not see
	for _, e := range policy.Errors(err) {
		e.File, e.Line, e.Column = "", 0, 0
		texts = append(texts, strings.TrimPrefix(e.Error(), ": "))
	}
	if texts != nil {
		err = errors.New(strings.Join(texts, "; "))
	}
	return errors.Join(err, memory.Close())
}

func severalAPIs(all []source) bool {
	for _, s := range all {
		if s.api != all[0].api {
			return true
		}
	}
	return false
}

// writer writes a policy file.
type writer struct {
	names       map[string]bool // of policies
	shared      bool            // whether there is a shared storage
	severalAPIs bool
	blocks      map[bool]bool // the values of blockOnUnknownQuota in policies that are written and counted in the store
	head        []string      // comments at the beginning
	lost        []string
}

// lose notes what has no equivalent, and returns the comment for it.
func (w *writer) lose(policy, what string) string {
	what = line(what)
	if policy == "" {
		w.head = append(w.head, "NOT TRANSLATED: "+what)
		w.lost = append(w.lost, what)
		return ""
	}
	w.lost = append(w.lost, policy+": "+what)
	return "  # NOT TRANSLATED: " + what + "\n"
}

// line makes one line of text that a comment may have.
func line(s string) string {
	quoted := fmt.Sprintf("%q", s)
	return strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), `\\`, `\`)
}

// quoted writes text as YAML reads it again.
func quoted(s string) string {
	if strconv.Quote(s) == `"`+strings.ReplaceAll(s, `"`, `\"`)+`"` && !strings.Contains(s, "'") {
		return "'" + s + "'" // an expression is easier to read so
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // text can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// longestName leaves room for a number and for the names of limits.
const longestName = 40

// name returns a policy's name that no other one has.
func (w *writer) name(s source) string {
	base := strings.Map(func(c rune) rune {
		if strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-", c) {
			return c
		}
		return '-'
	}, s.called)
	if base == "" {
		base = map[string]string{spikeControl: "spike-control"}[s.kind]
	}
	if base == "" {
		base = "rate-limit"
	}
	base = base[:min(len(base), longestName)]
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		if !w.names[name] {
			w.names[name] = true
			return name
		}
	}
}

// The names of policies that are translated.
const (
	rateLimiting = "rate-limiting-flex"
	spikeControl = "spike-control-flex"
)

// policy writes a policy; "" if it cannot be translated.
func (w *writer) policy(s source) string {
	name := w.name(s)
	var comments strings.Builder
	var body string
	shared := false
	switch s.kind {
	case rateLimiting, "rate-limiting":
		body, shared = w.rateLimiting(name, s, &comments)
	case spikeControl, "spike-control":
		body = w.spikeControl(name, s, &comments)
	case "rate-limiting-sla-based-flex", "rate-limiting-sla-based", "rate-limiting-sla-flex", "rate-limiting-sla":
		w.lose("", name+": the limits of "+s.kind+" are in the contracts of API Manager: write a policy with key, and with tiers: {default: 100/m fixed_window, gold: 1000/m fixed_window}; the program gives the tier of a request with policy.WithTier")
		return ""
	default:
		w.lose("", fmt.Sprintf("%s: policyRef.name: %q is no rate limiting policy (known are %s and %s)", name, s.kind, rateLimiting, spikeControl))
		return ""
	}
	if body == "" {
		w.dropped(name, comments.String())
		return ""
	}
	if s.rules {
		comments.WriteString(w.lose(name, "rules: this policy applies to all requests (write match: {methods: [GET], paths: [/api/**]})"))
	}
	if w.severalAPIs && s.api != "" {
		comments.WriteString(w.lose(name, "the API "+s.api+": this policy applies to the requests of all APIs (write match: {paths: [/api/**]})"))
	}
	written := comments.String() + "  - name: " + name + "\n" + body
	const local = "    counting: local\n"
	// By itself, without the store that all policies share.
	if err := loads("policies:\n" + written + local); err != nil {
		w.dropped(name, comments.String())
		w.lose("", name+": "+err.Error())
		return ""
	}
	if shared {
		if block, said, _ := boolean(s.config, "blockOnUnknownQuota"); said { // counting has reported an error
			w.blocks[block] = true
		}
		return written + "    counting: shared\n"
	}
	return written + local
}

// dropped moves the comments of a policy that is not written to the beginning.
func (w *writer) dropped(name, comments string) {
	for text := range strings.Lines(comments) {
		if what, lost := strings.CutPrefix(text, "  # NOT TRANSLATED: "); lost {
			w.head = append(w.head, "NOT TRANSLATED: "+name+": "+strings.TrimSuffix(what, "\n"))
		}
	}
}
