package file

import (
	"fmt"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/policy/internal/words"
)

// wait is how long a request may wait.
func wait() kind[time.Duration] {
	const want = "a length of time such as 500ms or 6s"
	k := duration(want)
	return kind[time.Duration]{k.shape, func(r *reader, v value) (time.Duration, bool) {
		opened, ok := r.open(v)
		if !ok {
			return 0, false
		}
		if text := describe(opened.node); isNoTime(strings.Trim(text, `"`)) {
			r.bad(v, text+": want "+want, "leave wait out if no request shall wait")
			return 0, false
		}
		return k.read(r, opened)
	}}
}

// isNoTime reports whether a text is a length of time that is not above zero.
func isNoTime(text string) bool {
	if d, err := time.ParseDuration(text); err == nil {
		return d <= 0
	}
	d, err := time.ParseDuration(text + "s") // a number without a unit
	return err == nil && d <= 0
}

// longWait is a wait after which a client or a proxy has probably given up.
const longWait = time.Minute

// wait takes how long the requests of a policy may wait.
func (r *reader) wait(v value, p **Policy, d time.Duration) {
	if (*p).Wait = d; d > longWait {
		r.doubt(v, fmt.Sprintf("%s: many clients and proxies give up before, and a request that waits keeps its connection", words.Duration(d)),
			"write "+words.Duration(longWait)+" or less")
	}
}
