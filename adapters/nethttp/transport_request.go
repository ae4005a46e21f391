package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// DeniedError is the error for a request that a [Transport] has not sent.
type DeniedError struct {
	// Decision is the decision that denied the request. If Held is set, only its Reason,
	// RetryAfter and Err are set.
	Decision core.Decision
	// Host is the host that the request was for: see [TargetHost].
	Host string
	// Held reports that the host has asked for a pause that is not over: see
	// [ObeyRetryAfter]. The limiter has not charged the request.
	Held bool
	// Waited is how long a request that was Held has waited for the pause to end: see
	// [MaxHold].
	Waited time.Duration
}

// Error says which host, limiter and rule it was. It has no key.
func (e *DeniedError) Error() string {
	d := &e.Decision
	text := fmt.Sprintf("httplimit: the request to %q was not sent: ", e.Host)
	switch {
	case e.Held:
		text += "the host has asked for a pause"
	case d.Rule() != "":
		text += fmt.Sprintf("limiter %q, rule %q: %v", d.Limiter(), d.Rule(), d.Reason)
	default:
		text += fmt.Sprintf("limiter %q: %v", d.Limiter(), d.Reason)
	}
	if d.RetryAfter > 0 && d.RetryAfter != core.Never {
		text += fmt.Sprintf(", retry after %v", d.RetryAfter)
	}
	if d.Err != nil {
		text += ": " + d.Err.Error()
	}
	return text
}

// Unwrap returns Decision.Err. It is the error of the context if the context has ended
// while the request was waiting.
func (e *DeniedError) Unwrap() error { return e.Decision.Err }

// TargetHost is a key function for requests that a [Transport] sends. The key is the host of
// the request's URL in one spelling: a name in lower case without a trailing dot, an address
// as [netip.Addr] writes it. It has the port, unless that is the scheme's own:
// "api.example", "api.example:8443". The Host field of the request does not change it. For
// other requests, TargetHost returns an error.
func TargetHost(dst []byte, r core.Request) ([]byte, error) {
	host, ok := r.Value(targetKey{}).(string)
	if !ok {
		return dst, errNoTarget
	}
	return append(dst, host...), nil
}

var errNoTarget = errors.New("httplimit: TargetHost is for the requests of a Transport")

// targetKey is the key under which an outgoing request has its host.
type targetKey struct{}

func targetOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	host, port := strings.TrimSuffix(u.Hostname(), "."), strings.TrimLeft(u.Port(), "0")
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.Unmap().String()
	} else {
		host = strings.ToLower(host)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		return host
	}
	return host + ":" + port
}

// outgoingRequest is the core.Request of a client's request.
type outgoingRequest struct{ httprequest.Request }

func outgoing(r *http.Request) outgoingRequest {
	return outgoingRequest{httprequest.Request{HTTP: r}}
}

// RemoteAddr returns the host that the request is sent to.
func (r outgoingRequest) RemoteAddr() string { return targetOf(r.HTTP.URL) }

// Value implements core.Request.
func (r outgoingRequest) Value(key any) any {
	if key == (targetKey{}) {
		return targetOf(r.HTTP.URL)
	}
	return r.Request.Value(key)
}

// HeaderValues implements core.Request.
func (r outgoingRequest) HeaderValues(name string) []string {
	if strings.EqualFold(name, "Host") && r.HTTP.Host == "" && r.HTTP.URL != nil {
		return []string{r.HTTP.URL.Host}
	}
	return r.Request.HeaderValues(name)
}

// sentRequest is an outgoingRequest whose body base may be reading.
type sentRequest struct{ outgoingRequest }

// Body implements core.Request.
func (sentRequest) Body(int) ([]byte, error) { return nil, core.ErrBodyRead }
