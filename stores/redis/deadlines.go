package redisstore

import "github.com/redis/go-redis/v9"

// keepsDeadlines reports whether the client ends every command by the deadline of
// its context: a decision may then wait for the client on its caller's goroutine,
// which saves the time of waking another. What a client calls while it makes a
// connection may not keep to the deadline; dialing does not matter, because go-redis
// waits for it no longer than the context permits.
func keepsDeadlines(client Client) bool {
	c, ok := client.(*redis.Client)
	if !ok || c == nil {
		return false
	}
	o := c.Options()
	if o.Addr == failoverAddr || !o.ContextTimeoutEnabled || o.ReadTimeout < 0 || o.WriteTimeout < 0 {
		return false
	}
	return o.Limiter == nil && o.OnConnect == nil && o.CredentialsProvider == nil && o.CredentialsProviderContext == nil && o.StreamingCredentialsProvider == nil
}

// failoverAddr is the address of a client of redis.NewFailoverClient.
const failoverAddr = "FailoverClient"
