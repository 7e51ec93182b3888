package workspace

import "strings"

// wild reports whether name matches a pattern of gitignore(5), byte by byte as git's wildmatch does: "*" is any bytes, "?" one,
// "[a-z]" one of a class, "[!a]" one that is not, and a backslash takes the next byte as it is. In paths none of them matches a
// slash, but "**/" matches any folders and "/**" all that is inside. A pattern that is malformed matches nothing. Time is bounded by
// the lengths of both, multiplied, for each part of a path.
func wild(pattern, name string, paths bool) bool {
	i, j := 0, 0
	star, starAt := -1, 0 // the last "*": what follows it, and where that is tried
	deep, deepAt := -1, 0 // the last "**/"
	for j < len(name) {
		if i < len(pattern) {
			switch c := pattern[i]; c {
			case '*':
				from := i
				for i < len(pattern) && pattern[i] == '*' {
					i++
				}
				if paths && i-from > 1 && (from == 0 || pattern[from-1] == '/') {
					if i == len(pattern) {
						return true
					}
					if pattern[i] == '/' {
						i++
						deep, deepAt, star = i, j, -1
						continue
					}
				}
				star, starAt = i, j
				continue
			case '[':
				n, in := class(pattern[i:], name[j])
				if n == 0 {
					return false
				}
				if in && !(paths && name[j] == '/') {
					i, j = i+n, j+1
					continue
				}
			case '\\':
				if i+1 < len(pattern) && pattern[i+1] == name[j] {
					i, j = i+2, j+1
					continue
				}
			default:
				if c == name[j] || c == '?' && !(paths && name[j] == '/') {
					i, j = i+1, j+1
					continue
				}
			}
		}
		if star >= 0 && !(paths && name[starAt] == '/') {
			starAt++
			i, j = star, starAt
			continue
		}
		next := -1
		if deep >= 0 {
			next = strings.IndexByte(name[deepAt:], '/')
		}
		if next < 0 {
			return false
		}
		deepAt += next + 1
		i, j, star = deep, deepAt, -1
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// class reports whether c is in the class that a pattern begins with. n is the length of that, 0 when it is malformed.
func class(pattern string, c byte) (n int, in bool) {
	i := 1
	not := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if not {
		i++
	}
	var low byte // what a range could begin with, 0 when nothing could
	for first := true; ; first = false {
		if i >= len(pattern) {
			return 0, false
		}
		b := pattern[i]
		switch {
		case b == ']' && !first:
			return i + 1, in != not
		case b == '[' && strings.HasPrefix(pattern[i:], "[:"):
			end := strings.IndexByte(pattern[i+2:], ']')
			if end < 0 {
				return 0, false
			}
			if name, ok := strings.CutSuffix(pattern[i+2:i+2+end], ":"); ok {
				is, known := posix(name, c)
				if !known {
					return 0, false
				}
				in = in || is
				low = 0
				i += end + 3
				continue
			}
		case b == '-' && low != 0 && i+1 < len(pattern) && pattern[i+1] != ']':
			i++
			if pattern[i] == '\\' {
				i++
			}
			if i >= len(pattern) {
				return 0, false
			}
			in = in || low <= c && c <= pattern[i]
			low = 0
			i++
			continue
		case b == '\\':
			if i++; i >= len(pattern) {
				return 0, false
			}
			b = pattern[i]
		}
		in = in || b == c
		low = b
		i++
	}
}

// posix reports whether c is in a class of POSIX.
func posix(class string, c byte) (in, known bool) {
	lower, upper, digit := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	graph := '!' <= c && c <= '~'
	switch class {
	case "alnum":
		in = lower || upper || digit
	case "alpha":
		in = lower || upper
	case "blank":
		in = c == ' ' || c == '\t'
	case "cntrl":
		in = c < ' ' || c == 0x7F
	case "digit":
		in = digit
	case "graph":
		in = graph
	case "lower":
		in = lower
	case "print":
		in = graph || c == ' '
	case "punct":
		in = graph && !lower && !upper && !digit
	case "space":
		in = c == ' ' || '\t' <= c && c <= '\r'
	case "upper":
		in = upper
	case "xdigit":
		in = digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	default:
		return false, false
	}
	return in, true
}
