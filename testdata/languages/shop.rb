# What TestLanguages samples: each name that JRuby's compiler mangles.
class Shop
  def spin; finish = java.lang.System.nano_time + 2000000; while java.lang.System.nano_time < finish; end; end
  def slow?; spin; end
  def price=(x); spin; end
  def [](i); spin; end
  def blocky; [1, 2].each { |x| spin }; end
  def self.make; new.spin; end
end

while true
  s = Shop.new
  s.slow?
  s.price = 3
  s[3]
  s.blocky
  Shop.make
end
