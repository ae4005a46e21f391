-- muldiv returns floor(a × b / c) and the remainder, exactly, for whole numbers
-- from 0: a < 2^53, b < 2^31, c < 2^45, and a quotient below 2^53.
local function muldiv(a, b, c)
  local p = a * b
  if p < 9007199254740992 then
    local r = p % c
    return (p - r) / c, r
  end
  -- a = q × c + r, so that what is left is r × b / c with r < c: by long
  -- division, in digits of b so small that two products fit into 2^53.
  local r = a % c
  local q = (a - r) / c * b
  local quotient, left, digit = 0, 0, 268435456
  while digit >= 1 do
    local d = math.floor(b / digit)
    b = b - d * digit
    local x = left * 128 + r * d
    left = x % c
    quotient = quotient * 128 + (x - left) / c
    digit = digit / 128
  end
  return q + quotient, left
end
