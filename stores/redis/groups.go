package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
)

// group splits the items into groups that may be in one command, in the order
// of the first item of each.
func (s *Store) group(items []namedItem) [][]namedItem {
	layout := s.layout.Load()
	if layout == anyKeys || len(items) < 2 {
		return [][]namedItem{items}
	}
	var groups [][]namedItem
	slots := map[uint16]int{}
	for i := range items {
		if layout == oneSlot {
			slot := slotOf(items[i].name)
			if g, found := slots[slot]; found {
				groups[g] = append(groups[g], items[i])
				continue
			}
			slots[slot] = len(groups)
		}
		groups = append(groups, []namedItem{items[i]})
	}
	return groups
}

// crossesSlots reports whether a server, or a proxy before several, has
// rejected the command because its keys are not in one place. Nothing has run.
func crossesSlots(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "CROSSSLOT ")
}

// takeApart does what takeGroups or chargeGroups does, for a caller who may hang up. If the caller hangs
// up, the decision is completed in the background. So nobody avoids a charge by hanging
// up between two commands.
func (s *Store) takeApart(op operation, verb byte, groups [][]namedItem) (bool, error) {
	if verb == verbPeek || op.ctx.Done() == nil {
		return s.decideGroups(op, verb, groups)
	}
	own := cloneGroups(groups) // the caller's items are used again
	var allowed bool
	var err error
	if !await(op.ctx, func() {
		allowed, err = s.decideGroups(operation{context.WithoutCancel(op.ctx), op.end}, verb, own)
	}) {
		return false, op.canceled()
	}
	for i, g := range own {
		for j := range g {
			from, to := g[j].Item, groups[i][j].Item
			to.At = from.At
			copy(to.Results, from.Results)
		}
	}
	return allowed, err
}

// cloneGroups returns groups that share nothing with the batch.
func cloneGroups(groups [][]namedItem) [][]namedItem {
	own := make([][]namedItem, len(groups))
	for i, g := range groups {
		own[i] = make([]namedItem, len(g))
		for j := range g {
			item := *g[j].Item
			item.Key, item.Results = nil, slices.Clone(item.Results) // the name has the key
			item.Quotas = slices.Clone(item.Quotas)
			own[i][j] = namedItem{&item, g[j].rule, g[j].name}
		}
	}
	return own
}

func (s *Store) decideGroups(op operation, verb byte, groups [][]namedItem) (bool, error) {
	if verb == verbCharge || verb == verbGrant {
		return true, s.chargeGroups(op, verb, groups)
	}
	return s.takeGroups(op, verb, groups)
}

// chargeGroups charges groups that need a command each, or grants them hits, in order. If
// one fails, the others are charged all the same, because the caller must not charge any of
// them again. Only if nothing has been charged yet, it stops: the caller may then try again.
func (s *Store) chargeGroups(op operation, verb byte, groups [][]namedItem) error {
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
func (s *Store) takeGroups(op operation, verb byte, groups [][]namedItem) (bool, error) {
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

func (s *Store) peekGroups(op operation, groups [][]namedItem) (bool, error) {
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
func (s *Store) giveBack(op operation, groups [][]namedItem) {
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
func (s *Store) giveBackLater(ctx context.Context, groups [][]namedItem) {
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
			s.start(c)
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
