package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// decideGroups decides on groups that need a command each. If the caller hangs up, the decision is
// completed all the same: so nobody avoids a charge by hanging up between two commands.
func (s *Store) decideGroups(op operation, verb byte, groups [][]item) (bool, error) {
	op.ctx = context.WithoutCancel(op.ctx)
	if verb == verbCharge || verb == verbGrant {
		return true, s.chargeGroups(op, verb, groups)
	}
	return s.takeGroups(op, verb, groups)
}

// group splits the items into groups that may be in one command, in the order
// of the first item of each.
func (s *Store) group(items []item) (groups [][]item) {
	layout := s.layout.Load()
	if layout == anyKeys {
		return [][]item{items}
	}
	of := map[uint16]int{} // the group of a slot
	for _, it := range items {
		slot := slotOf(it.name)
		g, found := of[slot]
		if !found || layout == eachKey {
			g, groups = len(groups), append(groups, nil)
			of[slot] = g
		}
		groups[g] = append(groups[g], it)
	}
	return groups
}

// chargeGroups charges groups that need a command each, or grants them hits, in order. If
// one fails, the others are charged all the same, because the caller must not charge any of
// them again. Only if nothing has been charged yet, it stops: the caller may then try again.
func (s *Store) chargeGroups(op operation, verb byte, groups [][]item) error {
	var first error
	for i, g := range groups {
		_, err := s.ask(op, verb, g)
		if i == 0 && errors.Is(err, core.ErrNotCharged) {
			return err
		}
		if err != nil {
			first = cmp.Or(first, afterOthers(err))
		}
	}
	return first
}

// takeGroups decides on groups that need a command each. It first peeks at all
// groups but the first, concurrently. If none of them denies, it takes all
// groups in order. So a denied request changes nothing, as on a single server,
// unless another caller comes in between: then the groups taken before are
// refunded. They are refunded too if a group fails. A charge of the failed
// group stays if it was made: refunding a charge that may not have been made
// would admit a hit too many.
func (s *Store) takeGroups(op operation, verb byte, groups [][]item) (bool, error) {
	allowed, err := s.peekGroups(op, groups[1:])
	if err != nil {
		return false, err
	}
	if verb == verbPeek || !allowed {
		admits, err := s.ask(op, verbPeek, groups[0])
		return allowed && admits, err
	}
	for i, g := range groups {
		admits, err := s.ask(op, verbTake, g)
		if err != nil {
			s.giveBackLater(op.ctx, groups[:i])
			if i > 0 {
				err = afterOthers(err)
			}
			return false, err
		}
		if !admits {
			s.giveBack(op, groups[:i])
			return false, nil
		}
	}
	return true, nil
}

func (s *Store) peekGroups(op operation, groups [][]item) (bool, error) {
	var wg sync.WaitGroup
	admits, errs := make([]bool, len(groups)), make([]error, len(groups))
	for i, g := range groups {
		wg.Go(func() { admits[i], errs[i] = s.ask(op, verbPeek, g) })
	}
	wg.Wait()
	return !slices.Contains(admits, false), cmp.Or(errs...)
}

// giveBack refunds the groups and fills in their results as they are without
// the charge. If one fails, the rest is refunded later, and its results stay.
func (s *Store) giveBack(op operation, groups [][]item) {
	for i, g := range groups {
		_, err := s.do(op, verbRefund, g)
		if errors.Is(err, core.ErrNotCharged) {
			s.giveBackLater(op.ctx, groups[i:])
			return
		}
		if err == nil {
			_, err = s.ask(op, verbPeek, g)
		}
		if err != nil {
			s.giveBackLater(op.ctx, groups[i+1:])
			return
		}
	}
}

// giveBackLater refunds in the background, with a deadline of its own: the
// operation has used up its time, or its server does not answer.
func (s *Store) giveBackLater(ctx context.Context, groups [][]item) {
	if len(groups) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var pending []*call
	for _, g := range groups { // the items are the caller's
		c := s.newCall(s.begin(ctx), verbRefund, g)
		pending = append(pending, c)
	}
	go func() {
		for _, c := range pending {
			c.end = s.begin(ctx).end
			c.line.Go(c)
			_, _ = c.wait()
		}
	}()
}

const slots = 16384

// slotOf returns the hash slot of a key (Redis Cluster specification, "Key
// distribution model"). The names of this store have no braces, so the whole
// name is hashed.
func slotOf(key string) uint16 {
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ crc16Table[byte(crc>>8)^key[i]]
	}
	return crc % slots
}

// crc16Table is for CRC-16/XMODEM: polynomial x^16 + x^12 + x^5 + 1.
var crc16Table = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
