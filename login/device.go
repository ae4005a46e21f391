package login

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A device cookie is the base64url text of
//
//	expiry (8 bytes, seconds since the Unix epoch),
//	the account's generation (4), nonce (16), MAC (32)
//
// The MAC is HMAC-SHA256 of a label, the guard's name and the account, each after
// its length, and of the bytes before the MAC. A cookie of another account, or of a
// guard with another name and the same secret, is not valid.
const (
	nonceFrom    = 8 + 4
	headLength   = nonceFrom + 16
	cookieLength = headLength + sha256.Size
)

var cookieEncoding = base64.RawURLEncoding

func (c *Config) mac(secret []byte, account string, head []byte) []byte {
	h := hmac.New(sha256.New, secret)
	for _, part := range []string{"floodgate device cookie 2", c.Name, account} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		_, _ = h.Write([]byte(part))
	}
	_, _ = h.Write(head)
	return h.Sum(nil)
}

// sign returns the value of a new device cookie.
func (c *Config) sign(account string, generation int64) (value string, expires time.Time) {
	expires = c.now().Add(c.CookieFor).Truncate(time.Second)
	head := binary.BigEndian.AppendUint64(make([]byte, 0, cookieLength), uint64(expires.Unix()))
	head = binary.BigEndian.AppendUint32(head, uint32(generation))
	head = head[:headLength]
	_, _ = rand.Read(head[nonceFrom:]) // never fails
	return cookieEncoding.EncodeToString(append(head, c.mac(c.Secrets[0], account, head)...)), expires
}

// verify returns the nonce of a cookie that is valid for the account, and the account's generation
// when the cookie was made. The nonce is "" if the cookie is not valid. verify always tries all
// secrets and compares in constant time, so that the time it takes does not show which secret fits.
func (c *Config) verify(value, account string) (nonce string, generation int64) {
	if len(value) != cookieEncoding.EncodedLen(cookieLength) {
		return "", 0
	}
	cookie, err := cookieEncoding.DecodeString(value)
	if err != nil {
		return "", 0
	}
	head, mac := cookie[:headLength], cookie[headLength:]
	valid := false
	for _, secret := range c.Secrets {
		valid = hmac.Equal(mac, c.mac(secret, account, head)) || valid
	}
	expires := int64(binary.BigEndian.Uint64(head))
	if now := c.now().Unix(); !valid || now >= expires || expires-now > int64(c.CookieFor/time.Second)+1 {
		return "", 0
	}
	return string(head[nonceFrom:]), int64(binary.BigEndian.Uint32(head[8:]))
}

// DeviceCookie returns a cookie that makes the browser a trusted client of the
// account. A handler sets it after a success:
//
//	http.SetCookie(w, cookie)                              // net/http; Gin: c.Writer
//	c.SetCookie(cookie)                                    // Echo
//	c.Response().Header.Add("Set-Cookie", cookie.String()) // Fiber
//
// The cookie is valid until Config.CookieFor has passed or [Guard.Forget] is called.
// DeviceCookie asks the store once.
//
// The error wraps [core.ErrConfig] if Config.Secrets is nil. Any other error is the
// store's: log the user in without a cookie. DeviceCookie may be called concurrently.
func (g *Guard) DeviceCookie(ctx context.Context, username string) (*http.Cookie, error) {
	if len(g.config.Secrets) == 0 {
		return nil, fmt.Errorf("%w: Secrets: none: a device cookie needs one secret or more in Config.Secrets", core.ErrConfig)
	}
	account := g.config.Normalize(username)
	t, err := g.memory.read(ctx, "", account)
	if err != nil {
		return nil, fmt.Errorf("login: DeviceCookie: %w", err)
	}
	value, expires := g.config.sign(account, t.generation)
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
