"""Single questions with hand-written answers.

One block a question: the phrasings separated by '|', then the answer, then (if there is one) the
answer in a word or two after '#'.
"""

_TEXT = """
What is the largest planet?|Which planet is the biggest?|\
What is the biggest planet in the solar system?|Largest planet of the solar system?|\
Tell me which planet is the largest.
The largest planet is Jupiter. # Jupiter

What is the smallest planet?|Which planet is the smallest?|Smallest planet of the solar system?|\
Tell me which planet is the smallest.
The smallest planet is Mercury. # Mercury

Which planet is called the red planet?|What is the red planet?|Which planet is red?|\
Why is Mars red?|What planet do people call the red planet?
Mars is called the red planet, because iron oxide colours its ground red. # Mars

Which planet has rings?|What planet is famous for its rings?|Which planet has the big rings?|\
Tell me the planet with the beautiful rings.
Saturn is famous for its rings. # Saturn

How many planets are there?|How many planets are in the solar system?|\
How many planets does our solar system have?|Number of planets?|\
Tell me the number of planets around the Sun.
There are eight planets in the solar system. # eight

What is the closest star to the Earth?|Which star is the nearest to us?|\
What star is closest to Earth?|Which star is nearest to the Earth?
The closest star to the Earth is the Sun. # Sun

What is the Sun?|Is the Sun a star?|Is the Sun a planet?|Tell me about the Sun.|\
Please explain what the Sun is.
The Sun is a star. It gives us light and warmth. # star

What is the Moon?|Tell me about the Moon.|Is the Moon a planet?|What do you know about the Moon?|\
Please explain what the Moon is.
The Moon goes around the Earth. It shines because the Sun lights it up.

How many moons does the Earth have?|How many moons has Earth?|Does the Earth have one moon?|\
What is the number of moons of the Earth?
The Earth has one moon. # one

How long does the Earth take to go around the Sun?|\
How long does it take the Earth to travel around the Sun?|\
In what time does the Earth go around the Sun?|\
Tell me how long one trip of the Earth around the Sun takes.
The Earth goes around the Sun in one year, about 365 days. # 365

Is the Earth round?|What shape is the Earth?|Is the Earth flat?|What is the shape of the Earth?|\
Which shape does our planet have?
The Earth is round, almost like a ball. # round

Why is the sky blue?|Why does the sky look blue?|What makes the sky blue?|\
Can you explain why the sky is blue?|For what reason is the sky blue?
The sky is blue because air scatters blue light more than red light.

Why is grass green?|Why are plants green?|What makes leaves green?|Why are leaves green?|\
For what reason are plants green?
Plants are green because of chlorophyll, which catches the light of the Sun.

What is photosynthesis?|Explain photosynthesis.|How do plants make food?|\
What is meant by photosynthesis?|Please explain photosynthesis to me.
Photosynthesis is how plants make sugar from water, air and sunlight.

What is gravity?|Explain gravity.|Why do things fall down?|What is meant by gravity?|\
Please explain gravity to me.
Gravity is the force that pulls things together. It makes things fall to the ground.

Why does it rain?|How does rain form?|What is rain?|Where does rain come from?|Explain rain.|\
Please explain to me why it rains.
Water rises into the air, forms clouds and falls down again as rain.

What is a cloud?|What are clouds made of?|How do clouds form?|Tell me what a cloud is made of.
A cloud is made of many tiny drops of water in the air. # water

What is a rainbow?|How does a rainbow form?|Why are there rainbows?|Explain a rainbow.|\
Please explain to me what a rainbow is.
A rainbow appears when sunlight is split into colours by drops of rain.

How many colours does a rainbow have?|How many colors are in the rainbow?|\
How many colours has the rainbow?|What is the number of colours in a rainbow?
A rainbow has seven colours. # seven

What are the colours of the rainbow?|Name the colours of the rainbow.|\
Which colours does a rainbow have?|List the colors of the rainbow.|\
Tell me all the colours of a rainbow.
The colours of the rainbow are red, orange, yellow, green, blue, indigo and violet.

Why do we have seasons?|What causes the seasons?|Why are there seasons?|Explain the seasons.|\
For what reason do we have seasons?
We have seasons because the axis of the Earth is tilted.

Why is there day and night?|What causes day and night?|Why does it get dark at night?|\
Why is it dark at night?|For what reason is there day and night?
There is day and night because the Earth turns around itself once a day.

What is water made of?|What is the formula of water?|What is H2O?|\
What is the chemical formula of water?|Of which elements does water consist?
Water is H2O: two hydrogen atoms and one oxygen atom. # H2O

At what temperature does water boil?|When does water boil?|What is the boiling point of water?|\
How hot is boiling water?|Tell me the temperature at which water boils.
Water boils at 100 degrees Celsius. # 100

At what temperature does water freeze?|When does water freeze?|\
What is the freezing point of water?|When does water turn to ice?|\
Tell me the temperature at which water freezes.
Water freezes at 0 degrees Celsius. # 0

What is ice?|What is ice made of?|What is frozen water called?|What do we call frozen water?
Ice is frozen water. # water

What is steam?|What happens when water boils?|What does water become when it boils?|\
Tell me what steam is.
Steam is water in the form of a gas. # gas

What do plants need to grow?|What does a plant need?|What do plants need?|\
Tell me what a plant needs to live.
Plants need water, light, air and soil.

What do bees make?|What do bees produce?|Who makes honey?|Where does honey come from?|\
Which food do bees make?
Bees make honey. # honey

Where does milk come from?|Which animal gives us milk?|What animal gives milk?|\
Tell me where milk comes from.
Milk comes from cows. # cows

What is the largest animal?|What is the biggest animal in the world?|Which animal is the largest?|\
What is the biggest animal?|Tell me the largest animal on Earth.
The largest animal is the blue whale. # blue whale

What is the fastest land animal?|Which animal runs the fastest?|\
What is the fastest animal on land?|Which animal is the fastest on land?
The fastest animal on land is the cheetah. # cheetah

What is the tallest animal?|Which animal is the tallest?|What animal has the longest neck?|\
Which animal has a very long neck?
The tallest animal is the giraffe. # giraffe

What is the king of the animals?|Which animal is called the king of the jungle?|\
Who is the king of the animals?|Which animal do people call the king?
The lion is called the king of the animals. # lion

Which bird cannot fly?|Can penguins fly?|Can a penguin fly?|Name a bird that cannot fly.|\
Tell me a bird that is not able to fly.
Penguins cannot fly, but they swim very well. # Penguins

How many arms does an octopus have?|How many arms has an octopus?|An octopus has how many arms?|\
What is the number of arms of an octopus?
An octopus has eight arms. # eight

What is the largest ocean?|Which ocean is the biggest?|What is the biggest ocean in the world?|\
Which ocean is the largest?|Tell me the largest of the oceans.
The largest ocean is the Pacific Ocean. # Pacific

How many oceans are there?|How many oceans does the Earth have?|Number of oceans?|\
Tell me the number of oceans.
There are five oceans. # five

How many continents are there?|How many continents does the Earth have?|Number of continents?|\
How many continents are on Earth?|Tell me the number of continents.
There are seven continents. # seven

What is the largest continent?|Which continent is the biggest?|What is the biggest continent?|\
Which continent is the largest?
The largest continent is Asia. # Asia

What is the smallest continent?|Which continent is the smallest?|\
Tell me the smallest of the continents.
The smallest continent is Oceania. # Oceania

What is the coldest continent?|Which continent is the coldest?|Where is the South Pole?|\
On which continent is the South Pole?
The South Pole is in Antarctica, the coldest continent. # Antarctica

What is the highest mountain?|What is the tallest mountain in the world?|\
Which mountain is the highest?|What is the highest mountain on Earth?|How high is Mount Everest?|\
Tell me the highest mountain of the world.
The highest mountain is Mount Everest. It is 8849 metres high. # Everest

What is the longest river?|Which river is the longest?|What is the longest river in the world?|\
What is the longest river in Africa?|Tell me the longest river of the world.
The longest river is the Nile in Africa. # Nile

Which river flows through Paris?|What river is in Paris?|What is the river of Paris?|\
On which river is Paris?
The Seine flows through Paris. # Seine

Which river flows through London?|What river is in London?|What is the river of London?|\
On which river is London?
The Thames flows through London. # Thames

Which river flows through Vienna?|What river is in Vienna?|Which river flows through Budapest?|\
What is the river of Budapest?|On which river are Vienna and Budapest?
The Danube flows through Vienna and Budapest. # Danube

What is the largest country?|Which country is the biggest?|\
What is the biggest country in the world?|Which country is the largest?|\
Tell me the largest country of the world.
The largest country is Russia. # Russia

What is the smallest country?|Which country is the smallest?|\
What is the smallest country in the world?|Tell me the smallest country of the world.
The smallest country is Vatican City. # Vatican

What is the largest desert?|Which desert is the largest hot desert?|\
What is the biggest hot desert?|What is the Sahara?|Which hot desert is the largest one?
The Sahara in Africa is the largest hot desert. # Sahara

What is the largest island?|Which island is the biggest?|What is the biggest island in the world?|\
Tell me the largest island of the world.
The largest island is Greenland. # Greenland

What is a volcano?|Explain a volcano.|What comes out of a volcano?|Tell me about volcanoes.|\
Please explain what a volcano is.
A volcano is a mountain from which hot melted rock, called lava, can flow. # lava

What is an earthquake?|Explain an earthquake.|What causes an earthquake?|\
Tell me about earthquakes.|Please explain what an earthquake is.
An earthquake is a shaking of the ground when pieces of the Earth's crust move.

What is an island?|Explain the word island.|What do we call land with water all around it?
An island is land with water all around it.

What is a desert?|Explain the word desert.|What do we call a very dry place?
A desert is a very dry place where it almost never rains.

How many bones does a human have?|How many bones are in the human body?|\
How many bones has an adult?|What is the number of bones in our body?
An adult human has 206 bones. # 206

How many teeth does an adult have?|How many teeth does a human have?|How many teeth has an adult?|\
What is the number of teeth of a grown person?
An adult human has 32 teeth. # 32

How many senses do humans have?|What are the five senses?|Name the five senses.|\
Which senses do we have?|Tell me the five senses.
The five senses are sight, hearing, smell, taste and touch. # five

What does the heart do?|What is the job of the heart?|Why do we have a heart?|\
What is the heart for?|Please explain what the heart does.
The heart pumps blood through the body. # blood

What do lungs do?|What are the lungs for?|Why do we have lungs?|What do we use to breathe?|\
Please explain what the lungs do.
The lungs take oxygen from the air that we breathe. # oxygen

What does the brain do?|What is the brain for?|Why do we have a brain?|What do we think with?|\
Please explain what the brain does.
The brain controls the body and lets us think and feel. # think

Why do we sleep?|Why do people sleep?|What is sleep good for?|Why is sleep important?|\
For what reason do we sleep?
We sleep so that body and brain can rest.

Why do we eat?|Why do people eat?|What is food good for?|Why do we need food?|\
For what reason do we eat?
We eat because food gives the body energy. # energy

What do we breathe?|Which gas do we need to breathe?|What gas do people need?|\
Which gas is needed for breathing?
We need oxygen to breathe. # oxygen

What is air made of?|Which gas makes up most of the air?|What is the main gas of the air?|\
Of which gas does most of the air consist?
Air is mostly nitrogen, with about one fifth oxygen. # nitrogen

What is the hardest natural material?|What is the hardest stone?|Which stone is the hardest?|\
How hard is a diamond?|Which natural material is the hardest?
Diamond is the hardest natural material. # diamond

What is the lightest element?|Which element is the lightest?|What is the lightest gas?|\
Which gas is the lightest one?
The lightest element is hydrogen. # hydrogen

Which metal is liquid at room temperature?|Which metal is liquid?|What metal is liquid?|\
Name a liquid metal.
Mercury is liquid at room temperature. # mercury

What is fast, light or sound?|Is light faster than sound?|What is faster, light or sound?|\
Which is faster: sound or light?
Light is much faster than sound. # light

How fast is light?|What is the speed of light?|How fast does light travel?|\
Tell me the speed of light.
Light travels about 300000 kilometres in a second. # 300000

What is electricity?|Explain electricity.|What is an electric current?|\
Please explain electricity to me.
Electricity is the flow of tiny charged particles called electrons. # electrons

What is an atom?|Explain an atom.|What are things made of?|Please explain what an atom is.
An atom is a tiny piece of matter. Everything is made of atoms.

What is a computer?|Explain a computer.|What does a computer do?|Please explain what a computer is.
A computer is a machine that follows instructions to work with numbers and text.

What is the internet?|Explain the internet.|What is the Internet?|\
Please explain what the internet is.
The internet is a worldwide network of computers.

What is a language model?|Explain a language model.|What is an LLM?|How do language models work?|\
Please explain what a language model is.
A language model is a program that guesses the next word again and again. I am a very small one.

What is a token?|Explain tokens.|What are tokens?|Please explain what a token is.
A token is a piece of text, such as a word or a part of a word.

What is WebGPU?|Explain WebGPU.|Tell me about WebGPU.|Please explain what WebGPU is.
WebGPU lets a web page use the graphics card for computing.

What is a GPU?|Explain a GPU.|What does a graphics card do?|Please explain what a GPU is.
A GPU is a chip that does many simple calculations at the same time.

What is Bezel?|Tell me about Bezel.|What is the program Bezel?|Please explain what Bezel is.
Bezel is a program that runs language models on your own computer, in a web page.

What is a verb?|Explain the word verb.|What are verbs?|Please explain what a verb is.
A verb is a word for an action, such as run or eat.

What is a noun?|Explain the word noun.|What are nouns?|Please explain what a noun is.
A noun is a word for a person, a thing or a place, such as tree or city.

What is an adjective?|Explain the word adjective.|What are adjectives?|\
Please explain what an adjective is.
An adjective is a word that describes something, such as red or small.

How many letters are in the alphabet?|How many letters does the alphabet have?|\
How many letters does the English alphabet have?|\
What is the number of letters in the English alphabet?
The English alphabet has 26 letters. # 26

What is the first letter of the alphabet?|Which letter comes first in the alphabet?|\
First letter of the alphabet?|With which letter does the alphabet begin?
The first letter of the alphabet is A. # A

What is the last letter of the alphabet?|Which letter comes last in the alphabet?|\
Last letter of the alphabet?|With which letter does the alphabet end?
The last letter of the alphabet is Z. # Z

What are the vowels?|Which letters are vowels?|Name the vowels.|List the vowels.|\
Tell me all the vowels.
The vowels are A, E, I, O and U.

Say the alphabet.|Write the alphabet.|What is the alphabet?|List the letters of the alphabet.|\
Please write down the alphabet.
A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z.

What are the days of the week?|Name the days of the week.|List the days of the week.|\
Which days are in a week?|Tell me all days of the week.
The days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday.

What are the months of the year?|Name the months.|List the months of the year.|\
Which months are in a year?|Tell me all months of the year.
The months are January, February, March, April, May, June, July, August, September, October, \
November and December.

What are the seasons?|Name the four seasons.|List the seasons.|How many seasons are there?|\
Which seasons are there?|Tell me all seasons of the year.
The four seasons are spring, summer, autumn and winter. # four

Which days are the weekend?|What is the weekend?|Which days belong to the weekend?|\
Tell me the days of the weekend.
The weekend is Saturday and Sunday. # Saturday and Sunday

When is Christmas?|On what date is Christmas?|What day is Christmas?|Tell me the date of Christmas.
Christmas is on the 25th of December. # 25th of December

When is New Year?|When does the year begin?|What is the first day of the year?|\
Tell me the date of New Year's Day.
New Year's Day is on the 1st of January. # 1st of January

What are the planets?|Name the planets.|List the planets.|Which planets are there?|\
List all planets of the solar system.|Tell me all the planets in order.
The planets are Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus and Neptune.

What are the primary colours?|Name the primary colours.|Which colours are primary colours?|\
Tell me the three primary colours.
The primary colours are red, yellow and blue. # red, yellow and blue

What are the continents?|Name the continents.|List the continents.|Which continents are there?|\
Tell me all the continents.
The continents are Africa, Antarctica, Asia, Europe, North America, Oceania and South America.

How many players are in a football team?|How many players does a football team have?|\
How many people play in a football team?|What is the number of players in a football team?
A football team has eleven players. # eleven

How many strings does a guitar have?|How many strings has a guitar?|\
What is the number of strings of a guitar?
A guitar usually has six strings. # six

How many keys does a piano have?|How many keys has a piano?|How many keys are on a piano?|\
What is the number of keys of a piano?
A piano usually has 88 keys. # 88

How many squares does a chessboard have?|How many squares are on a chessboard?|\
How many fields has a chessboard?|What is the number of squares of a chessboard?
A chessboard has 64 squares. # 64

What is chess?|Explain chess.|What kind of game is chess?|Please explain what chess is.
Chess is a board game for two players. You win when you trap the other king.

Who was the first man on the Moon?|Who was the first person on the Moon?|\
Who walked on the Moon first?|Which person was the first on the Moon?
Neil Armstrong was the first person on the Moon, in 1969. # Neil Armstrong

Who was the first person in space?|Who was the first human in space?|Who flew into space first?|\
Which person was the first in space?
Yuri Gagarin was the first person in space, in 1961. # Yuri Gagarin

When did the Second World War end?|When did World War II end?|\
In which year did the Second World War end?|Tell me the year in which World War II ended.
The Second World War ended in 1945. # 1945

When did the First World War begin?|When did World War I start?|\
In which year did the First World War begin?|Tell me the year in which World War I began.
The First World War began in 1914. # 1914

When did Columbus reach America?|When did Columbus sail to America?|\
In which year did Columbus discover America?|Tell me the year in which Columbus came to America.
Columbus reached America in 1492. # 1492

When did the Berlin Wall fall?|In which year did the Berlin Wall fall?|\
When did the wall in Berlin come down?|Tell me the year in which the Berlin Wall fell.
The Berlin Wall fell in 1989. # 1989

When did the French Revolution begin?|In which year did the French Revolution start?|\
What year was the French Revolution?|Tell me the year in which the French Revolution began.
The French Revolution began in 1789. # 1789

Who was the first president of the United States?|Who was the first US president?|\
Name the first president of the United States.|Which person was the first American president?
George Washington was the first president of the United States. # George Washington

Who was Napoleon?|Tell me about Napoleon.|What did Napoleon do?|Please explain who Napoleon was.
Napoleon was an emperor of France who led many wars in Europe. # France

Who was Cleopatra?|Tell me about Cleopatra.|Where did Cleopatra rule?|\
Please explain who Cleopatra was.
Cleopatra was a queen of ancient Egypt. # Egypt

Who was William Shakespeare?|Who was Shakespeare?|Tell me about Shakespeare.|\
What did Shakespeare write?|Please explain who Shakespeare was.
William Shakespeare was an English writer. He wrote Romeo and Juliet and Hamlet. # writer

Who was Albert Einstein?|Who was Einstein?|Tell me about Einstein.|Please explain who Einstein was.
Albert Einstein was a physicist who developed the theory of relativity. # relativity

Who built the pyramids?|Where are the pyramids?|Which people built the pyramids?|\
Tell me who built the pyramids.
The ancient Egyptians built the pyramids. # Egyptians

Where do kangaroos live?|Where can I find kangaroos?|In which country do kangaroos live?|\
Tell me where kangaroos live.
Kangaroos live in Australia. # Australia

Where do penguins live?|Where can I find penguins?|On which continent do penguins live?|\
Tell me where penguins live.
Most penguins live in the cold south, many of them in Antarctica. # Antarctica

Where do polar bears live?|Where can I find polar bears?|Where is the home of polar bears?|\
Tell me where polar bears live.
Polar bears live in the Arctic, near the North Pole. # Arctic

Where do camels live?|Where can I find camels?|Where is the home of camels?|\
Tell me where camels live.
Camels live in the desert. # desert

Where do fish live?|Where can I find fish?|Where is the home of fish?|Tell me where fish live.
Fish live in water. # water

What is bread made of?|What do I need for bread?|How is bread made?|Tell me what bread is made of.
Bread is made of flour, water, salt and yeast. # flour

What is cheese made of?|What is cheese made from?|How is cheese made?|\
Tell me what cheese is made of.
Cheese is made from milk. # milk

What is glass made of?|What is glass made from?|How is glass made?|Tell me what glass is made of.
Glass is made from sand. # sand

What is paper made of?|What is paper made from?|How is paper made?|Tell me what paper is made of.
Paper is made from wood. # wood

What is wine made of?|What is wine made from?|How is wine made?|Tell me what wine is made of.
Wine is made from grapes. # grapes

What is chocolate made of?|What is chocolate made from?|How is chocolate made?|\
Tell me what chocolate is made of.
Chocolate is made from cocoa beans. # cocoa

What does a doctor do?|What is the job of a doctor?|Explain what a doctor does.|\
Tell me what doctors do.
A doctor helps people who are ill. # ill

What does a teacher do?|What is the job of a teacher?|Explain what a teacher does.|\
Tell me what teachers do.
A teacher helps people learn. # learn

What does a baker do?|What is the job of a baker?|Explain what a baker does.|Tell me what bakers do.
A baker makes bread and cakes. # bread

What does a farmer do?|What is the job of a farmer?|Explain what a farmer does.|\
Tell me what farmers do.
A farmer grows plants and keeps animals for food. # food

What does a pilot do?|What is the job of a pilot?|Explain what a pilot does.|Tell me what pilots do.
A pilot flies planes. # planes

What does a thermometer measure?|What is a thermometer?|What is a thermometer for?|\
Tell me what a thermometer is for.
A thermometer measures temperature. # temperature

What does a clock show?|What is a clock for?|What do we use a clock for?|\
Tell me what a clock is for.
A clock shows the time. # time

What is an umbrella for?|What do we use an umbrella for?|When do you need an umbrella?|\
Tell me what an umbrella is for.
An umbrella keeps you dry in the rain. # rain

What is a key for?|What do we use a key for?|What does a key do?|Tell me what a key is for.
A key opens and closes a lock. # lock

What is a compass for?|What does a compass show?|What do we use a compass for?|\
Tell me what a compass is for.
A compass shows where north is. # north

Is a tomato a fruit?|Is a tomato a fruit or a vegetable?|What is a tomato?|\
Would you say that a tomato is a fruit?
Botanically a tomato is a fruit, but in the kitchen it is used as a vegetable. # fruit

What is heavier, a kilogram of feathers or a kilogram of iron?|\
Which is heavier, a kilogram of iron or a kilogram of feathers?|\
What weighs more, a kilogram of feathers or of iron?
They weigh the same: one kilogram. # same

What came first, the chicken or the egg?|Which came first, the egg or the chicken?|\
Was the chicken or the egg first?
Eggs came first: animals laid eggs long before there were chickens. # Eggs

What is the meaning of life?|Why are we here?|What is the sense of life?|\
Tell me the meaning of life.
People have many answers to that. Being kind and curious is a good start.

What is love?|Explain love.|What does love mean?|Please explain what love is.
Love is a deep feeling of care for someone or something.

What is happiness?|How can I be happy?|What makes people happy?|Please explain what happiness is.
Happiness is a good feeling. Friends, sleep and fresh air often help.

How do I make tea?|How do you make tea?|Explain how to make tea.|How can I make a cup of tea?|\
Please explain to me how to make tea.
Boil water, pour it over the tea leaves, wait three minutes, and take the leaves out.

How do I boil an egg?|How do you boil an egg?|How long do I boil an egg?|\
Please explain to me how to boil an egg.
Put the egg into boiling water. After about six minutes it is soft, after ten it is hard.

How do I make pancakes?|How do you make pancakes?|Give me a recipe for pancakes.|\
Please explain to me how to make pancakes.
Mix flour, milk, eggs and a little salt. Then fry thin rounds of it in a hot pan.

How do I make a sandwich?|How do you make a sandwich?|Give me a recipe for a sandwich.|\
Please explain to me how to make a sandwich.
Take two slices of bread and put cheese, salad or tomato between them.

How do I plant a tree?|How do you plant a tree?|Explain how to plant a tree.|\
Please explain to me how to plant a tree.
Dig a hole, put the roots into it, fill it with soil, and water the tree well.

How do I learn to swim?|How can I learn swimming?|How do you learn to swim?|\
Please explain to me how to learn to swim.
Take lessons, begin in shallow water, and practise often.

How can I sleep better?|I cannot sleep. What can I do?|What helps me to sleep?|\
Please explain to me how to sleep better.
Go to bed at the same time each day, keep the room dark, and put the screen away early.

How can I learn faster?|How do I learn well?|What helps with learning?|\
Please explain to me how to learn better.
Learn a little every day, test yourself, and sleep enough.

How many people live on Earth?|What is the population of the world?|\
How many people are there in the world?|Tell me the number of people on Earth.
About eight billion people live on Earth. # eight billion

What is the currency of Europe?|Which money is used in most of the European Union?|\
What is the euro?|Tell me the currency of the European Union.
The euro is the currency of most countries of the European Union. # euro

What is the Great Wall?|Where is the Great Wall?|What is the Great Wall of China?|\
Tell me about the Great Wall of China.
The Great Wall is a very long old wall in the north of China. # China

What is the Amazon?|Where is the Amazon?|What is the Amazon river?|Tell me about the Amazon.
The Amazon is a huge river in South America. # South America

What are the Alps?|Where are the Alps?|What is the highest mountain of the Alps?|\
Tell me about the Alps.
The Alps are mountains in Europe. Their highest one is Mont Blanc. # Europe

What is square root of 9?|What is the square root of 9?|Square root of 9?|\
Tell me the square root of 9.
The square root of 9 is 3. # 3

What is pi?|What is the number pi?|How much is pi?|What is the value of pi?|Tell me the value of pi.
Pi is about 3.14159. # 3.14159

What is a prime number?|Explain prime numbers.|What are prime numbers?|\
Please explain what a prime number is.
A prime number can be divided only by 1 and by itself, such as 2, 3, 5 or 7.

Is zero even?|Is 0 even or odd?|Is zero even or odd?|Is zero an even number?
Zero is an even number. # even

What is the binary number 10?|What is binary 10 in decimal?|\
What is 10 in binary as a decimal number?|Tell me the decimal value of binary 10.
Binary 10 is 2 in decimal. # 2

What is AI?|What is artificial intelligence?|Explain artificial intelligence.|\
Please explain what artificial intelligence is.
Artificial intelligence means computer programs that do things for which people use their minds.

What is a robot?|Explain a robot.|What do robots do?|Please explain what a robot is.
A robot is a machine that can move and do work by itself.

What is a friend?|Explain friendship.|What makes a good friend?|Please explain what a friend is.
A friend is someone who likes you, listens to you and helps you.

What is music?|Explain music.|Why do people like music?|Please explain what music is.
Music is sound in rhythm and melody that people enjoy.

What is the capital of Scotland?|Capital of Scotland?|Which city is the capital of Scotland?|\
Tell me Scotland's capital.
The capital of Scotland is Edinburgh. # Edinburgh

What is the capital of England?|Capital of England?|Which city is the capital of England?|\
Tell me England's capital.
The capital of England is London. # London

What is the capital of Wales?|Capital of Wales?|Which city is the capital of Wales?|\
Tell me the capital of Wales.
The capital of Wales is Cardiff. # Cardiff

What is the capital of California?|Capital of California?|Which city is the capital of California?|\
Tell me California's capital.
The capital of California is Sacramento. # Sacramento

What is the capital of Texas?|Capital of Texas?|Which city is the capital of Texas?|\
Tell me the capital of Texas.
The capital of Texas is Austin. # Austin

What is the capital of Europe?|Does Europe have a capital?|What is the capital of Africa?|\
What is the capital of Asia?|Which city is the capital of Europe?
A continent has no capital. Please ask me for a country.

Who discovered America?|Who found America?|Who sailed to America in 1492?|\
Which sailor reached America in 1492?
Christopher Columbus reached America in 1492. # Columbus

What is a dinosaur?|What were dinosaurs?|Tell me about dinosaurs.|\
Please explain what dinosaurs were.
Dinosaurs were large reptiles that lived on Earth millions of years ago. # reptiles

What is a black hole?|Explain black holes.|Tell me about black holes.|\
Please explain what a black hole is.
A black hole is a place in space from which not even light can escape. # light

What is the Milky Way?|In which galaxy are we?|What is our galaxy called?|\
Tell me the name of our galaxy.
The Milky Way is our galaxy. # Milky Way

What is DNA?|Explain DNA.|What does DNA do?|Please explain what DNA is.
DNA is the molecule in our cells that holds the plan of the body. # cells

What is a vitamin?|Why do we need vitamins?|Which fruit has vitamin C?|\
Please explain what vitamins are.
Vitamins are substances in food that keep us healthy. Oranges hold much vitamin C. # food

What is democracy?|Explain democracy.|What does democracy mean?|Please explain what democracy is.
Democracy means that the people choose who governs them.

What is money?|Why do we need money?|Explain money.|Please explain what money is.
Money is what people use to pay for things.

What is time?|Explain time.|What do we mean by time?|Please explain what time is.
Time is what clocks measure: the order in which things happen.

What is mathematics?|What is maths?|Explain mathematics.|Please explain what mathematics is.
Mathematics is the science of numbers, shapes and patterns.

What is science?|Explain science.|What do scientists do?|Please explain what science is.
Science finds out how the world works, by looking closely and by testing ideas.

Why is the sea salty?|Why is the ocean salty?|Why is sea water salty?|\
For what reason is the sea salty?
The sea is salty because rivers carry salts from the rocks into it.

How far is the Moon?|How far away is the Moon?|What is the distance to the Moon?|\
Tell me how far away the Moon is.
The Moon is about 384000 kilometres away. # 384000

How far is the Sun?|How far away is the Sun?|What is the distance to the Sun?|\
Tell me how far away the Sun is.
The Sun is about 150 million kilometres away. # 150 million

Why is ice slippery?|Why does ice float?|Does ice float on water?|For what reason does ice float?
Ice floats because it is lighter than water. # lighter

How do planes fly?|Why can planes fly?|How does a plane fly?|Please explain how planes fly.
The wings of a plane push air down, and the air pushes the plane up.

How do fish breathe?|Can fish breathe under water?|How does a fish breathe?|\
Please explain how fish breathe.
Fish breathe with gills, which take oxygen from the water. # gills

Why do birds fly south?|Why do birds fly away in winter?|Where do birds go in winter?|\
For what reason do birds fly south?
Many birds fly south in winter because it is warm there and they find food.

Why do cats purr?|Why does a cat purr?|What does it mean when a cat purrs?|\
For what reason do cats purr?
Cats often purr when they feel well.

Why do dogs bark?|Why does a dog bark?|What does it mean when a dog barks?|\
For what reason do dogs bark?
Dogs bark to talk to others: to warn, to greet or to play.

Why is fire hot?|What is fire?|What does fire need?|Please explain what fire needs.
Fire needs fuel, oxygen and heat. # oxygen

Why is exercise good?|Is sport healthy?|Why is sport healthy?|For what reason is sport good?
Sport keeps the heart and the muscles strong.

How do magnets work?|What is a magnet?|Explain magnets.|Please explain what a magnet does.
A magnet pulls iron. It has a north pole and a south pole. # iron

What is sound?|How does sound travel?|Explain sound.|Please explain what sound is.
Sound is a trembling of the air that our ears can hear. # air

What is wind?|Where does wind come from?|Explain wind.|Please explain what wind is.
Wind is moving air. # air

What is a shadow?|Why do I have a shadow?|Explain a shadow.|Please explain what a shadow is.
A shadow is a dark place where something blocks the light. # light

What is a mirror?|What does a mirror do?|Why can I see myself in a mirror?|\
Please explain what a mirror does.
A mirror sends the light back, so you can see yourself. # light

What is a map?|What is a map for?|What do we use a map for?|Please explain what a map is for.
A map shows where places are. # places

What is a dictionary?|What is a dictionary for?|What is in a dictionary?|\
Please explain what a dictionary is for.
A dictionary explains or translates words. # words

What is a doctor for animals called?|Who helps sick animals?|What is a vet?|\
Who helps animals that are ill?
A vet is a doctor for animals. # vet

What is a year?|How long is a year?|Explain what a year is.|Please explain what a year is.
A year is the time that the Earth needs to go around the Sun. # Sun
"""


def _parse(text):
    items = []
    for block in text.strip().split("\n\n"):
        questions, answer = block.split("\n")
        answer, _, short = answer.partition(" # ")
        items.append((questions.split("|"), answer.strip(), short.strip()))
        assert len(items[-1][0]) >= 2, block
    return items


TRIVIA = _parse(_TEXT)
