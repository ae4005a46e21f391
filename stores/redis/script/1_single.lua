-- The commonest call, without the machinery below: a take from one key with one
-- sliding or fixed window, which admits it. It does what the machinery does, to
-- the unit and the byte; all else, such as a denial or the states of other
-- limits under the same key, is left to that. Nothing that it does not need is
-- made before it: each function takes time. A number that is an argument of a
-- command is written as text, which is faster.
if verb == 'take' and #KEYS == 1 and #ARGV[5] < 23 then
  local spec, cost = ARGV[5], tonumber(ARGV[6])
  local kind, window, _, quota = unpack('<I1I6I6I4', spec)
  if kind < 4 and cost > 0 then
    -- One byte more than is read, so that a longer value is noticed.
    local sliding, v = kind < 2, redis.pcall('GETRANGE', KEYS[1], '0', '33')
    local first = kind % 2 == 1 and now - now % window or now -- the start of a window that opens now
    local t, a, b
    if v == '' and absent(KEYS[1]) then
      t, a, b = first, 0, 0
    elseif type(v) == 'string' and #v == 33 then
      local version, length, _, k, w, start, cur, prev = unpack('<I1I3i7I1I6i7I4I4', v)
      if version == 2 and length == 29 and k == kind and w == window then
        t, a, b = start, cur, prev
        if now >= t + (sliding and 2 or 1) * window then
          t, a, b = first, 0, 0
        elseif sliding and now >= t + window then
          t, a, b = t + window, 0, a
        end
      end
    end
    if t and t - now < window and a <= MOST and b <= MOST then
      local weighed, at = 0, t > now and t or now
      if sliding and b > 0 then weighed = b * (window - (at - t)) end
      local before = (weighed - weighed % window) / window
      if weighed < 9007199254740992 and a + before + cost <= quota then
        a = a + cost
        local last = t + window
        local reset = last - now
        local more = reset
        if sliding then
          last = last + window
          reset = last - now - (window - 1 - (window - 1) % a) / a
          -- One hit less of this window counts one unit after its end. Before
          -- that, so does one hit less of the window before, if it counts.
          more = last - window + 1 - now
          if before > 0 then
            local p = before * window -- at most weighed, and so exact
            more = last - window - now - ((p - 1) - (p - 1) % b) / b
          end
        end
        local value = pack('<I1I3i7I1I6i7I4I4', 2, 29, last, kind, window, t, a, b)
        local r = redis.pcall('SET', KEYS[1], value, 'PX', ceil((last - now) / 1000) + slack)
        if type(r) == 'table' and r.err then return r end
        return ARGV[1] .. pack('<i8i8i8i8i8', at, quota - a - before, reset, more, 0)
      end
    end
  end
end
