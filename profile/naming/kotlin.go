package naming

import (
	"path"
	"regexp"
	"strings"
)

// Functions with parameters of inline classes end in "-" and a hash of their signature: the first five bytes of an MD5
// sum in base64 for URLs (InlineClassAbi.kt, md5base64). Members of inline classes without such parameters end in
// "-impl".
var (
	kotlinHash    = regexp.MustCompile(`^([^- ]+)-([A-Za-z0-9_-]{7})(\$default)?$`)
	kotlinMember  = regexp.MustCompile(`^([^- ]+)-impl(\$default)?$`)
	kotlinCompile = map[string]bool{"box": true, "unbox": true, "constructor": true}
)

// kotlin undoes what Kotlin's compiler does to names. Stack traces show that, but it helps no reader. Facades of files
// (ShopKt), bar$default, and invokeSuspend stay: they are code of their own, and logs show them.
func kotlin(class, method, file string) (string, string) {
	class, part := withoutPart(class, file)
	if part != "" {
		// Private functions of a part of a facade also end in that part's name (JvmMultifileClass).
		method = strings.Replace(method, "$"+part, "", 1)
	}
	if m := kotlinHash.FindStringSubmatch(method); m != nil && isHash(m[2]) {
		return class, m[1] + m[3]
	}
	if m := kotlinMember.FindStringSubmatch(method); m != nil && !kotlinCompile[m[1]] {
		return class, m[1] + m[2]
	}
	return class, method
}

// withoutPart converts StringsKt__StringsJVMKt to StringsKt, if it was compiled from StringsJVM.kt: each of the files
// that form one facade has a class.
func withoutPart(class, file string) (facade, part string) {
	at := strings.LastIndex(class, "Kt__")
	if at < 0 {
		return class, ""
	}
	begin := strings.LastIndexByte(class, '.') + 1
	if at < begin || class[at+len("Kt__"):] != strings.TrimSuffix(file, path.Ext(file))+"Kt" {
		return class, ""
	}
	return class[:at+len("Kt")], class[begin:]
}

// isHash distinguishes a hash from the end of a name that was written in backticks, `returns-nothing`: an end that is
// spelt like a word is not a hash. One hash in a hundred looks like a word, and stays.
func isHash(s string) bool {
	word := strings.TrimLeft(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	return strings.TrimLeft(word, "abcdefghijklmnopqrstuvwxyz") != "" && strings.Trim(s, "0123456789") != ""
}
