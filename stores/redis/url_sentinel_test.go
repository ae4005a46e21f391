package redisstore

import "testing"

// A URL with sentinels has the user and the password of the database before the @, and
// those of the sentinels in its parameters.
func TestTheUsersOfAURLWithSentinels(t *testing.T) {
	u, err := parseURL("redis+sentinel://bob:one@10.0.0.1/2?master=m&addr=10.0.0.2&sentinel_username=guard&sentinel_password=two")
	if err != nil {
		t.Fatal(err)
	}
	o, err := u.sentinelOptions()
	if err != nil {
		t.Fatal(err)
	}
	if o.Username != "bob" || o.Password != "one" || o.SentinelUsername != "guard" || o.SentinelPassword != "two" || o.MasterName != "m" || o.DB != 2 ||
		len(o.SentinelAddrs) != 2 || o.SentinelAddrs[0] != "10.0.0.1:26379" || o.SentinelAddrs[1] != "10.0.0.2:26379" {
		t.Errorf("%+v", o)
	}
}
