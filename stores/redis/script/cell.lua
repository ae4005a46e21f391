-- The state that fixed and sliding windows share, as cell.go: t the window's
-- start, a its hits, b the previous window's hits. t is nil if there is none.
local function load_window(m, v, at, lengths)
  local t, a, b = unpack('<i7I4I4', v, at)
  if a > MOST or b > MOST then return false end
  if now < t + lengths * m.window then
    if t - now >= m.window then t, m.mended = anchor(m), true end
    m.t, m.a, m.b = t, a, b
  end
  return true
end

local function dump_window(m)
  return m.t and pack('<i7I4I4', m.t, m.a, m.b)
end

local function time_of_window(m) return m.t end

local function grant_window(m, n)
  if m.t then m.a = max(0, m.a - n) end
end
