package login

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A device cookie is base64url of
//
//	expiry (8 bytes, seconds since the Unix epoch), nonce (16), MAC (32)
//
// The MAC is HMAC-SHA256 of a label, the guard's name, the account, the expiry
// and the nonce, with lengths: who has a cookie of one account, or of another
// guard with the same secret, has nothing for this one.
const (
	nonceLength  = 16
	cookieLength = 8 + nonceLength + sha256.Size
)

var cookieEncoding = base64.RawURLEncoding.Strict()

// signer makes and checks device cookies.
type signer struct {
	name    string
	secrets [][]byte
	now     func() time.Time
	valid   time.Duration
}

func newSigner(c *Config) *signer {
	s := &signer{name: c.Name, now: c.Clock, valid: c.CookieFor}
	for _, secret := range c.Secrets {
		s.secrets = append(s.secrets, append([]byte(nil), secret...))
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

func (s *signer) mac(secret []byte, account string, head []byte) []byte {
	h := hmac.New(sha256.New, secret)
	for _, part := range []string{"floodgate device cookie 1", s.name, account} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		_, _ = h.Write([]byte(part))
	}
	_, _ = h.Write(head)
	return h.Sum(nil)
}

func (s *signer) sign(account string) (value string, expires time.Time) {
	expires = s.now().Add(s.valid).Truncate(time.Second)
	head := binary.BigEndian.AppendUint64(make([]byte, 0, cookieLength), uint64(expires.Unix()))
	head = head[:8+nonceLength]
	_, _ = rand.Read(head[8:]) // never fails
	return cookieEncoding.EncodeToString(append(head, s.mac(s.secrets[0], account, head)...)), expires
}

// check returns the nonce of a cookie that is valid for the account, "" for any
// other. All secrets are tried, whichever fits, and compared in constant time.
func (s *signer) check(value, account string) string {
	if len(value) != cookieEncoding.EncodedLen(cookieLength) {
		return ""
	}
	cookie, err := cookieEncoding.DecodeString(value)
	if err != nil {
		return ""
	}
	head, mac := cookie[:8+nonceLength], cookie[8+nonceLength:]
	valid := false
	for _, secret := range s.secrets {
		valid = hmac.Equal(mac, s.mac(secret, account, head)) || valid
	}
	expires := int64(binary.BigEndian.Uint64(head))
	if now := s.now().Unix(); !valid || now >= expires || expires-now > int64(s.valid/time.Second)+1 {
		return ""
	}
	return string(head[8:])
}

// device returns the nonce of the request's device cookie, "" where it has no
// valid one for the account.
func (g *Guard) device(r core.Request, account string) string {
	if len(g.signer.secrets) == 0 {
		return ""
	}
	value, _ := r.Cookie(g.config.CookieName)
	return g.signer.check(value, account)
}

// DeviceCookie returns a cookie that tells the browser of somebody who has just
// logged in from strangers, for a handler to set after a success:
//
//	http.SetCookie(w, cookie)                              // net/http; Gin: c.Writer
//	c.SetCookie(cookie)                                    // Echo
//	c.Response().Header.Add("Set-Cookie", cookie.String()) // Fiber
//
// Where the guard has no Secrets, the error wraps [core.ErrConfig].
func (g *Guard) DeviceCookie(username string) (*http.Cookie, error) {
	if len(g.signer.secrets) == 0 {
		return nil, fmt.Errorf("%w: Secrets: none: there are no device cookies without", core.ErrConfig)
	}
	value, expires := g.signer.sign(g.config.Normalize(username))
	return &http.Cookie{
		Name:     g.config.CookieName,
		Value:    value,
		Path:     "/",
		Expires:  expires,
		MaxAge:   int(g.config.CookieFor / time.Second),
		Secure:   !g.config.InsecureCookie,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}, nil
}

func (c *Config) checkCookie() error {
	name := c.CookieName
	if name == "" {
		name = DefaultCookieName
	}
	if err := (&http.Cookie{Name: name, Value: "x"}).Valid(); err != nil {
		return fmt.Errorf("%w: CookieName: %q: %w", core.ErrConfig, name, err)
	}
	if c.InsecureCookie && (strings.HasPrefix(name, "__Host-") || strings.HasPrefix(name, "__Secure-")) {
		return fmt.Errorf("%w: CookieName: %q: browsers take such a cookie with TLS only, and InsecureCookie is set", core.ErrConfig, name)
	}
	return nil
}
