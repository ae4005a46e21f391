package memcachedstore

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// items is memcached as a swapstore.Swapper: it reads items with gets, and changes them only with
// add and cas.
type items struct{ client *memcache.Client }

// Load implements swapstore.Swapper.
func (s items) Load(ctx context.Context, names []string) ([]swapstore.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found, err := s.client.GetMulti(names)
	if err != nil {
		return nil, err
	}
	values := make([]swapstore.Value, len(names))
	for i, name := range names {
		if item := found[name]; item != nil {
			values[i] = swapstore.Value{Value: open(item.Value), Version: item}
		}
	}
	return values, nil
}

// Swap implements swapstore.Swapper.
func (s items) Swap(ctx context.Context, name string, old swapstore.Value, value []byte, ttl time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	// The item may also hold states of others, which may need longer than check30Days allows.
	seconds := int32((min(ttl+slack, longest-time.Second) + time.Second - 1) / time.Second)
	var err error
	if old.Version == nil {
		err = s.client.Add(&memcache.Item{Key: name, Value: seal(value), Expiration: seconds})
	} else {
		item := *old.Version.(*memcache.Item) // has what it takes to compare
		item.Value, item.Flags, item.Expiration = seal(value), 0, seconds
		err = s.client.CompareAndSwap(&item)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, memcache.ErrNotStored), errors.Is(err, memcache.ErrCASConflict), errors.Is(err, memcache.ErrCacheMiss):
		return false, nil
	}
	if rejected(err) {
		err = notcharged.Error(err)
	}
	return false, err
}

// rejected reports whether an error of a Swap proves that the value was not stored: there was no
// connection, or the server has rejected the value.
func rejected(err error) bool {
	var dial *net.OpError
	var slow *memcache.ConnectTimeoutError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &slow) ||
		strings.Contains(err.Error(), "SERVER_ERROR out of memory") || strings.Contains(err.Error(), "SERVER_ERROR object too large")
}

// Delete implements swapstore.Swapper.
func (s items) Delete(ctx context.Context, names []string) error {
	var errs []error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.client.Delete(name); !errors.Is(err, memcache.ErrCacheMiss) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// seal appends a checksum to a value, so that a value is noticed that has been cut or padded, or
// that a foreign program wrote.
func seal(value []byte) []byte {
	return binary.BigEndian.AppendUint32(value, crc32.Checksum(value, castagnoli))
}

// open returns the value that was sealed, nil if it was not.
func open(sealed []byte) []byte {
	n := len(sealed) - 4
	if n < 0 || crc32.Checksum(sealed[:n], castagnoli) != binary.BigEndian.Uint32(sealed[n:]) {
		return nil
	}
	return sealed[:n:n]
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
