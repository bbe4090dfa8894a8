// What TestLanguages samples: each name that Scala's compiler mangles.
package shop

object Ops {
  def spin(): Unit = { val end = System.nanoTime() + 5000000L; while (System.nanoTime() < end) {} }
}

class Vec(val x: Int) {
  private var q = 0
  def +(o: Vec): Vec = { Ops.spin(); new Vec(x + o.x) }
  def ++:(o: Int): Vec = { Ops.spin(); this }
  def size: Int = q
  def size_=(n: Int): Unit = { Ops.spin(); q = n }
}

class Special[@specialized(Int) T] { def id(t: T): T = { Ops.spin(); t } }

object Main {
  object Deep { def down(): Unit = Ops.spin() }

  def main(args: Array[String]): Unit = while (true) {
    new Vec(1) + new Vec(2)
    3 ++: new Vec(1)
    new Vec(1).size = 4
    new Special[Int].id(3)
    Deep.down()
    List(1, 2).foreach(x => Ops.spin())
  }
}
