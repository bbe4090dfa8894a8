package naming

import (
	"strings"
	"testing"
)

// Names from JVMs, in the JVM's form: class, method, source file. Some rows say that their names come from a compiler's
// sources or from stack traces of others.
var names = []struct{ what, class, method, file, want string }{
	{"lambda, JDK 8 and 11", "P$$Lambda$12", "run", "", "P$$Lambda.run"},
	{"lambda, JDK 17", "P$$Lambda$10+0x00007f5028003448", "run", "", "P$$Lambda.run"},
	{"lambda, JDK 21", "P$$Lambda+0x00007f99a8001228", "run", "", "P$$Lambda.run"},
	{"lambda of the CDS archive", "java.util.stream.Collectors$$Lambda$22+0x800000069", "accept", "", "java.util.stream.Collectors$$Lambda.accept"},
	{"lambda of a Scala object", "shop.Main$$$Lambda$10+0x00007f42e80af160", "apply$mcVI$sp", "", "shop.Main$$$Lambda.apply$mcVI$sp"},
	{"a lambda's body", "P", "lambda$main$0", "P.java", "P.lambda$main$0"},
	{"LambdaForm, JDK 8", "java.lang.invoke.LambdaForm$DMH", "invokeStatic_I_I", "LambdaForm$DMH", "java.lang.invoke.LambdaForm$DMH.invokeStatic_I_I"},
	{"LambdaForm, JDK 17", "java.lang.invoke.LambdaForm$MH+0x00007f5028002800", "invoke_MT", "LambdaForm$MH", "java.lang.invoke.LambdaForm$MH.invoke_MT"},
	{"hidden class of a framework", "com.example.Mapper+0x00000001000c4000", "map", "", "com.example.Mapper.map"},
	{"a class with a plus", "com.example.a+b", "c", "", "com.example.a+b.c"},
	{"a class that ends in a number", "com.example.Sha1$256", "c", "Sha1.java", "com.example.Sha1$256.c"},
	{"accessor, JDK 8", "sun.reflect.GeneratedMethodAccessor17", "invoke", "", "sun.reflect.GeneratedMethodAccessor.invoke"},
	{"accessor, JDK 17", "jdk.internal.reflect.GeneratedConstructorAccessor3", "newInstance", "", "jdk.internal.reflect.GeneratedConstructorAccessor.newInstance"},
	{"accessor of serialisation", "jdk.internal.reflect.GeneratedSerializationConstructorAccessor4", "newInstance", "", "jdk.internal.reflect.GeneratedSerializationConstructorAccessor.newInstance"},
	{"another's accessor", "com.example.GeneratedMethodAccessor17", "invoke", "", "com.example.GeneratedMethodAccessor17.invoke"},
	{"proxy", "jdk.proxy2.$Proxy12", "find", "", "jdk.proxy2.$Proxy12.find"},
	{"Byte Buddy (sources)", "com.example.Shop$ByteBuddy$xZ0aB1cD", "sell", "", "com.example.Shop$ByteBuddy.sell"},
	{"Hibernate (sources)", "com.example.Item$HibernateProxy$Jk3PqW9x", "getName", "", "com.example.Item$HibernateProxy.getName"},
	{"Mockito (sources)", "com.example.Shop$MockitoMock$1837244517", "sell", "", "com.example.Shop$MockitoMock.sell"},
	{"Spring", "com.example.Shop$$SpringCGLIB$$0", "sell", "<generated>", "com.example.Shop$$SpringCGLIB$$0.sell"},

	{"Kotlin: a file's functions", "shop.ShopKt", "spin", "Shop.kt", "shop.ShopKt.spin"},
	{"Kotlin: parameter of an inline class", "shop.ShopKt", "walk-xNsCYzs", "Shop.kt", "shop.ShopKt.walk"},
	{"Kotlin: the same with defaults", "shop.ShopKt", "walk-xNsCYzs$default", "Shop.kt", "shop.ShopKt.walk$default"},
	{"Kotlin: a hash that begins with a minus", "shop.Meters", "twice--UXGlcg", "Shop.kt", "shop.Meters.twice"},
	{"Kotlin: member of an inline class (sources)", "shop.Meters", "toString-impl", "Shop.kt", "shop.Meters.toString"},
	{"Kotlin: boxing", "shop.Meters", "box-impl", "Shop.kt", "shop.Meters.box-impl"},
	{"Kotlin: defaults", "shop.Box", "withDefault$default", "Shop.kt", "shop.Box.withDefault$default"},
	{"Kotlin: suspending lambda", "shop.ShopKt$main$1$2", "invokeSuspend", "Shop.kt", "shop.ShopKt$main$1$2.invokeSuspend"},
	{"Kotlin: companion", "shop.Box$Companion", "make", "Shop.kt", "shop.Box$Companion.make"},
	{"Kotlin: part of a facade", "kotlin.text.StringsKt__StringsKt", "lines", "Strings.kt", "kotlin.text.StringsKt.lines"},
	{"Kotlin: another part", "kotlin.collections.ArraysKt___ArraysJvmKt", "asList", "_ArraysJvm.kt", "kotlin.collections.ArraysKt.asList"},
	{"Kotlin: a private function of a part", "kotlin.text.StringsKt__StringsKt", "rangesDelimitedBy$StringsKt__StringsKt$default", "Strings.kt", "kotlin.text.StringsKt.rangesDelimitedBy$default"},
	{"Kotlin: a class that only looks like a part", "shop.FooKt__BarKt", "run", "Other.kt", "shop.FooKt__BarKt.run"},
	{"Kotlin: in backticks", "shop.ShopKt", "my slow-Function", "Shop.kt", "shop.ShopKt.my slow-Function"},
	{"Kotlin: in backticks, a word of seven letters", "shop.ShopKt", "plain-default", "Shop.kt", "shop.ShopKt.plain-default"},
	{"Kotlin: in backticks, a number", "shop.ShopKt", "ticket-1234567", "Shop.kt", "shop.ShopKt.ticket-1234567"},
	{"Clojure has such a name", "shop.core", "walk-xNsCYzs", "core.clj", "shop.core.walk-xNsCYzs"},

	{"Scala: operator", "shop.Vec", "$plus$plus$colon", "Shop.scala", "shop.Vec.++:"},
	{"Scala: assignment", "shop.Vec", "size_$eq", "Shop.scala", "shop.Vec.size_="},
	{"Scala: class of operators", "scala.collection.immutable.$colon$colon", "head", "List.scala", "scala.collection.immutable.::.head"},
	{"Scala: object", "shop.Ops$", "spin", "Shop.scala", "shop.Ops$.spin"},
	{"Scala: object in an object", "shop.Greeter$Deep$", "down", "Shop.scala", "shop.Greeter$Deep$.down"},
	{"Scala: anonymous class of an object", "shop.Main$$anon$1", "run", "Shop.scala", "shop.Main$$anon$1.run"},
	{"Scala 2: lambda", "shop.Main$", "$anonfun$main$1", "Shop.scala", "shop.Main$.$anonfun$main$1"},
	{"Scala 3: lambda", "shop.Main$", "main$$anonfun$3$$anonfun$1", "Shop.scala", "shop.Main$.main$$anonfun$3$$anonfun$1"},
	{"Scala: a class", "org.apache.pekko.actor.typed.Behavior", "unsafeCast", "Behavior.scala", "org.apache.pekko.actor.typed.Behavior.unsafeCast"},
	{"Scala: its companion object", "org.apache.pekko.actor.typed.Behavior$", "interpretMessage", "Behavior.scala", "org.apache.pekko.actor.typed.Behavior$.interpretMessage"},
	{"Scala: a class of operators", "scala.collection.immutable.$colon$colon$", "unapply", "List.scala", "scala.collection.immutable.::$.unapply"},
	{"Scala: a private name of a companion", "org.apache.pekko.dispatch.Mailbox$", "org$apache$pekko$dispatch$Mailbox$$status", "Mailbox.scala", "org.apache.pekko.dispatch.Mailbox$.status"},
	{"Scala 2: lambda in an operator (sources)", "shop.Vec", "$anonfun$$plus$plus$1", "Shop.scala", "shop.Vec.$anonfun$++$1"},
	{"Scala: lambda in a method at", "shop.Vec", "$anonfun$at$1", "Shop.scala", "shop.Vec.$anonfun$at$1"},
	{"Scala: class up in an object", "shop.Dir$up", "go", "Shop.scala", "shop.Dir$up.go"},
	{"Scala: specialised", "shop.Sp$mcI$sp", "id$mcI$sp", "Shop.scala", "shop.Sp.id"},
	{"Scala: specialised method", "scala.collection.immutable.Range", "foreach$mVc$sp", "Range.scala", "scala.collection.immutable.Range.foreach"},
	{"Scala: trait's static method", "shop.Greets", "greet$", "Shop.scala", "shop.Greets.greet$"},
	{"Scala: trait's initialiser", "shop.Greets", "$init$", "Shop.scala", "shop.Greets.$init$"},
	{"Scala: expanded private name (sources)", "org.apache.spark.Executor", "org$apache$spark$Executor$$report", "Executor.scala", "org.apache.spark.Executor.report"},
	{"Scala: another's expanded name", "org.apache.spark.Other", "org$apache$spark$Executor$$report", "Other.scala", "org.apache.spark.Other.org$apache$spark$Executor$$report"},
	{"Java: a name with $plus", "com.example.Shop$", "a$plus$plus", "Shop.java", "com.example.Shop$.a$plus$plus"},
	{"Java without a source file", "com.example.Shop$", "$plus", "", "com.example.Shop$.$plus"},

	{"Groovy: closure", "shop.Box$_slow_closure2$_closure4", "doCall", "Shop.groovy", "shop.Box$_slow_closure2$_closure4.doCall"},
	{"Groovy: closure of a script", "shop.Shop$_run_closure1", "doCall", "Shop.groovy", "shop.Shop$_run_closure1.doCall"},

	{"Ruby: method", "shop", "RUBY$method$slow?$3", "shop.rb", "shop.slow?"},
	{"Ruby: operator", "shop", `RUBY$method$\=\{\}$6`, "shop.rb", "shop.[]"},
	{"Ruby: assignment", "shop", "RUBY$method$price=$4", "shop.rb", "shop.price="},
	{"Ruby: block", "shop", "RUBY$block$blocky$8", "shop.rb", "shop.block in blocky"},
	{"Ruby: block of a script", "jr.main", `RUBY$block$\=\^main\_$0`, "jr/main.rb", "jr.main.block in <main>"},
	{"Ruby: script", "shop", "RUBY$script", "shop.rb", "shop.<top>"},
	{"Ruby: body of a class (sources)", "shop", "RUBY$class$Shop$1", "shop.rb", "shop.<class:Shop>"},
	{"Ruby: call site", "shop", `invokeOther30:\=\{\}`, "shop.rb", "shop.invokeOther30:[]"},
	{"Ruby: what only begins like that", "shop", "RUBY$other$x$1", "shop.rb", "shop.RUBY$other$x$1"},
	{"JRuby 1.7 (a stack trace)", "rubyjit.Rack::Lock$$call_9D2E3A2DC6D4739AEFA0FEFD72B6C9712EF582B8", "__file__", "rack/lock.rb", "Rack::Lock.call"},
	{"JRuby 1.7: block (a stack trace)", "rubyjit.ActiveRecord::Pool$$checkout_0978F3C1EFB2CBFA2CD717B12DA76E3113CD78B7", "block_1$RUBY$__file__", "pool.rb", "ActiveRecord::Pool.block in checkout"},
	{"JRuby 1.7: another part (a stack trace)", "rubyjit.Rack::Lock$$call_9D2E3A2DC6D4739AEFA0FEFD72B6C9712EF582B8", "chained_0_ensure_1$RUBY$__ensure__", "rack/lock.rb", "Rack::Lock$$call.chained_0_ensure_1$RUBY$__ensure__"},
}

func TestMethod(t *testing.T) {
	for _, n := range names {
		if got := Method(n.class, n.method, n.file); got != n.want {
			t.Errorf("%s: %s.%s became %q, not %q", n.what, n.class, n.method, got, n.want)
		}
	}
}

// FuzzMethod: names come from the target, and may be anything.
func FuzzMethod(f *testing.F) {
	for _, n := range names {
		f.Add(n.class, n.method, n.file)
	}
	f.Add("", "", ".scala")
	f.Add("$", "$", "a.scala")
	f.Add("shop", `RUBY$method$\=\$1`, "a.rb")
	f.Add("shop", `RUBY$method$\=$1`, "a.rb")
	f.Fuzz(func(t *testing.T, class, method, file string) {
		got := Method(class, method, file)
		if !strings.Contains(got, ".") {
			t.Fatalf("%q has no class", got)
		}
		if len(got) > len(class)+1+len(method)+1 { // "singleton class" is one character longer than the text that it replaces
			t.Fatalf("%q.%q has grown to %q", class, method, got)
		}
		PlumbingOf(got)
		Pool(method)
		PoolLabel(class)
	})
}

func TestPool(t *testing.T) {
	for name, want := range map[string]string{
		"pool-1-thread-17":                 "pool-1-thread-*",
		"ForkJoinPool-1-worker-3":          "ForkJoinPool-1-worker-*",
		"ForkJoinPool.commonPool-worker-3": "ForkJoinPool.commonPool-worker-*",
		"http-nio-8080-exec-12":            "http-nio-8080-exec-*",
		"http-nio-8080-Acceptor":           "http-nio-8080-Acceptor",
		"nioEventLoopGroup-3-2":            "nioEventLoopGroup-3-*",
		"DefaultDispatcher-worker-11":      "DefaultDispatcher-worker-*",
		"GC Thread#3":                      "GC Thread#*",
		"C2 CompilerThread0":               "C2 CompilerThread*",
		"Thread-1":                         "Thread-*",
		"HttpClient-3-Worker-17":           "HttpClient-*-Worker-*",
		"HttpClient-3-SelectorManager":     "HttpClient-3-SelectorManager",
		"#37":                              "#*",
		"42":                               "*",
		"main":                             "main",
		"":                                 "",
		"RMI TCP Connection(2)-127.0.0.1":  "RMI TCP Connection(*)-127.0.0.1",
		"conn to 10.0.0.7:5432":            "conn to 10.0.0.7:5432",
		"TLS1.3":                           "TLS1.3",
		"[0x27dcf714 0x58b088a6] socket":   "[* *] socket",
		"0xyz":                             "0xyz",
		"pool-1-thread-17 idle":            "pool-1-thread-17 idle",
		"Ärzte-7":                          "Ärzte-*",
	} {
		if got := Pool(name); got != want {
			t.Errorf("%q is of %q, not %q", name, got, want)
		}
	}
	for label, want := range map[string]string{
		"[pool-1-thread-17 tid=4711]": "[pool-1-thread-* tid=*]",
		"[main tid=7]":                "[main tid=*]",
		"[a tid=3 b-4 tid=7]":         "[a tid=3 b-* tid=*]",
		"[order-17 virtual #31]":      "[order-* virtual #*]",
		"[virtual #31]":               "[virtual #*]",
		"[pool-1-thread-* tid=*]":     "[pool-1-thread-* tid=*]",
		"[truncated: stack-1]":        "[truncated: stack-1]",
		"main-1":                      "main-1",
		"[":                           "[",
	} {
		if got := PoolLabel(label); got != want {
			t.Errorf("%q is of %q, not %q", label, got, want)
		}
		if is := strings.HasSuffix(want, "*]"); IsThreadLabel(label) != is || IsThreadLabel(want) != is {
			t.Errorf("%q is a thread: %v; %q: %v", label, IsThreadLabel(label), want, IsThreadLabel(want))
		}
	}
}

// BenchmarkMethod makes names. It is done once for each method of a program.
func BenchmarkMethod(b *testing.B) {
	for b.Loop() {
		Method("com.example.shop.Order$Item", "price", "Order.java")
	}
}
