package procfs

// cutWord cuts the first word off b, which ends at a blank or a newline.
func cutWord(b []byte) (word, rest []byte) {
	i := 0
	for i < len(b) && b[i] != ' ' && b[i] != '\n' {
		i++
	}
	if i == len(b) {
		return b, nil
	}
	return b[:i], b[i+1:]
}

// CutUint reads the decimal number at the start of b.
func CutUint(b []byte) (v uint64, rest []byte, ok bool) {
	const safe = 19 // numbers of so many digits always fit
	i := 0
	for i < len(b) && i < safe && b[i]-'0' <= 9 {
		v = v*10 + uint64(b[i]-'0')
		i++
	}
	if i == safe && i < len(b) && b[i]-'0' <= 9 {
		d := uint64(b[i] - '0')
		if i++; v > (1<<64-1-d)/10 || i < len(b) && b[i]-'0' <= 9 {
			return 0, b, false
		}
		v = v*10 + d
	}
	return v, b[i:], i > 0
}

// cutNumber cuts off the first word, which must consist of decimal digits only.
func cutNumber(b []byte) (v uint64, rest []byte, ok bool) {
	v, rest, ok = CutUint(b)
	if len(rest) == 0 {
		return v, nil, ok
	}
	return v, rest[1:], ok && (rest[0] == ' ' || rest[0] == '\n')
}

// number reads a word that must consist of decimal digits only.
func number(word []byte) (v uint64, ok bool) {
	v, rest, ok := CutUint(word)
	return v, ok && len(rest) == 0
}

// hex reads a word like 0x1f.
func hex(word []byte) (v uint64, ok bool) {
	if len(word) < 3 || len(word) > 18 || word[0] != '0' || word[1] != 'x' {
		return 0, false
	}
	for _, c := range word[2:] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
