package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// group splits the items into groups that may be in one command, in the order
// of the first item of each.
func (s *Store) group(list *itemList) (groups [][]item) {
	layout := s.layout.Load()
	if layout == anyKeys || len(list.items) < 2 {
		list.groups[0] = list.items
		return list.groups[:]
	}
	of := map[uint16]int{} // the group of a slot
	for _, it := range list.items {
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

// runGroups runs a verb on groups that need a command each, all at the same time: a server that does
// not answer takes no time from the others. A failure for some keys does not stop the others, because
// the caller must not run the verb for those again.
func (s *Store) runGroups(op operation, verb byte, groups [][]item) (bool, error) {
	var wg sync.WaitGroup
	admits, errs := make([]bool, len(groups)), make([]error, len(groups))
	for i, g := range groups {
		wg.Go(func() {
			if admits[i], errs[i] = s.ask(op, verb, g); verb != verbPeek {
				errs[i] = afterOthers(errs[i])
			}
		})
	}
	wg.Wait()
	return !slices.Contains(admits, false), errors.Join(errs...)
}

// takeGroups takes groups that need a command each. It first peeks at all groups but the first. If
// none of them denies, it takes all groups in order. So a denied request changes nothing, as on a
// single server, unless another caller comes in between: then the groups taken before are
// refunded, and their results are those of the take. They are refunded too if a group
// fails. A charge of the failed group stays if it was made: refunding a charge that may not
// have been made would admit a hit too many.
func (s *Store) takeGroups(op operation, groups [][]item) (bool, error) {
	allowed, err := s.runGroups(op, verbPeek, groups[1:])
	if err != nil {
		return false, err
	}
	if !allowed {
		_, err := s.ask(op, verbPeek, groups[0]) // for its results
		return false, err
	}
	for i, g := range groups {
		admits, err := s.ask(op, verbTake, g)
		if i > 0 && (err != nil || !admits) {
			s.giveBack(op.ctx, groups[:i])
			err = afterOthers(err)
		}
		if err != nil || !admits {
			return false, err
		}
	}
	return true, nil
}

// giveBack refunds the groups in the background, with deadlines of their own: the operation may have
// used up its time, or its server may not answer.
func (s *Store) giveBack(ctx context.Context, groups [][]item) {
	for _, g := range groups {
		c := s.newCall(s.begin(ctx), verbRefund, g) // here, because the items are the caller's
		c.line.Go(c)
		go func() { _, _ = c.wait() }()
	}
}

// slotOf returns the hash slot of a key (Redis Cluster specification, "Key
// distribution model"): its CRC-16/XMODEM, modulo the number of slots. The names of this store have
// no braces, so the whole name is hashed.
func slotOf(key string) uint16 {
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return crc % 16384
}
