package file

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// twins are the forms that write the same two headers: a response can have one.
const twins = core.HeadersDraft07 | core.HeadersDraft10

const sameHeaders = "draft-07 and draft-10 write the same headers"

// headers is a form of response headers or a list of them.
func headers() kind[core.Headers] {
	form := choice(word[core.Headers]{"draft-03", core.HeadersDraft03}, word[core.Headers]{"draft-07", core.HeadersDraft07}, word[core.Headers]{"draft-10", core.HeadersDraft10},
		word[core.Headers]{"x-epoch", core.HeadersXEpoch}, word[core.Headers]{"x-milliseconds", core.HeadersXMillis}, word[core.Headers]{"x-seconds", core.HeadersXSeconds}, word[core.Headers]{"off", core.HeadersOff})
	const most = 7 // of a list
	one, many := form.shape, listOf(form.shape, most, true)
	return kind[core.Headers]{oneOf(form.words+", or a list of these", one, many), func(r *reader, v value) (core.Headers, bool) {
		before := len(r.errs)
		items := r.items(v, most, "a list of header forms")
		var h core.Headers
		for _, item := range items {
			got, ok := form.read(r, item)
			opened, _ := r.open(item)
			text := kindText(opened.node)
			const resets = core.HeadersXSeconds | core.HeadersXMillis | core.HeadersXEpoch
			switch {
			case !ok:
			case got == core.HeadersOff && len(items) > 1:
				r.bad(item, "off: cannot stand beside others", "")
			case got == core.HeadersOff:
			case h&got != 0:
				r.bad(item, text+": stands twice", "")
			case got&twins != 0 && h&twins != 0:
				r.bad(item, text+": "+sameHeaders, "write one of them")
			case got&resets != 0 && h&resets != 0:
				r.bad(item, text+": X-RateLimit-Reset can have only one form", "")
			default:
				h |= got
			}
		}
		if h == 0 {
			h = core.HeadersOff
		}
		return h, len(r.errs) == before
	}}
}

// oneTwin notes policies whose headers cannot be in one response. Clients see
// nothing of a dry run.
func (r *reader) oneTwin(policies []*Policy) {
	var first *Policy
	for _, p := range policies {
		switch h := p.Headers & twins; {
		case h == 0 || p.DryRun:
		case first == nil:
			first = p
		case h != first.Headers&twins:
			r.bad(p.headersAt, fmt.Sprintf("%s, and the policy %s in line %d has the other one", sameHeaders, first.Name, begin(first.headersAt.node).Position.Line),
				"write one of them in all policies")
		}
	}
}
